// Every operation, declared once: its route, its access, its parameters and its answer. Types,
// parsers and the OpenAPI document all come from this file.
import { Failure } from '../domain/failure.ts'
import type { Scope } from '../domain/token.ts'
import type { JsonValue } from './json.ts'
import { cursor, idempotencyKey, limit, newPlantShape, plantId } from './plants.ts'
import type { Refusal } from './refusals.ts'
import { anyText, type Member, type Parameter, type ValueOf } from './schema.ts'

export type Method = 'GET' | 'POST' | 'DELETE' | 'OPTIONS'

interface PlacedParameter<Value> {
  readonly in: 'path' | 'query' | 'header'
  readonly name: string
  readonly parameter: Parameter<Value>
}

type PlacedParameters = Readonly<Record<string, PlacedParameter<unknown>>>

/** What an operation answers when it succeeds. `media` is absent if there is no body. */
export interface Success {
  readonly status: number
  readonly description: string
  readonly media?: string
  /** The name of the published shape of the body, or that of its elements. */
  readonly shape?: 'Plant' | 'Plants' | 'Health'
  readonly header?: {
    readonly name: string
    readonly description: string
    readonly example: string
  }
}

export interface Operation<
  Takes extends PlacedParameters = PlacedParameters,
  Body extends Member<unknown> | undefined = Member<unknown> | undefined,
> {
  readonly method: Method
  /** A path template with at most one parameter, as its last segment. */
  readonly path: string
  /** The scope that a caller needs, or `public` if no token is needed. */
  readonly access: Scope | 'public'
  readonly summary: string
  readonly description?: string
  readonly takes: Takes
  readonly body: Body
  readonly success: Success
  /** Its refusals beside those that every operation has. */
  readonly refusals: readonly Refusal[]
  /** Left out of the OpenAPI document: pages for people. */
  readonly unpublished?: true
}

/** The typed input of an operation. A path parameter is always there; others may be absent. */
export type InputOf<Of> =
  Of extends Operation<infer Takes, infer Body>
    ? { readonly [Name in keyof Takes]: ParameterOf<Takes[Name]> } & (Body extends Member<
        infer Value
      >
        ? { readonly body: Value }
        : unknown)
    : never

type ParameterOf<Placed> = Placed extends {
  readonly in: 'path'
  readonly parameter: infer Declared
}
  ? ValueOf<Declared>
  : Placed extends { readonly parameter: infer Declared }
    ? ValueOf<Declared> | undefined
    : never

function operation<const Takes extends PlacedParameters, Body extends Member<unknown> | undefined>(
  declared: Operation<Takes, Body>,
): Operation<Takes, Body> {
  return declared
}

/** The parameters of a request as text. `query` returns every value under a name. */
export interface RawParameters {
  readonly path: string | undefined
  readonly query: (name: string) => readonly string[] | undefined
  readonly header: (name: string) => string | null
}

/** Reads an operation's input. Throws a Failure that names what is wrong. */
export function readInput<Of extends Operation>(
  operation: Of,
  raw: RawParameters,
  body: JsonValue | undefined,
): InputOf<Of> {
  const input: Record<string, unknown> = {}
  for (const key in operation.takes)
    input[key] = readParameter(operation.takes[key] as PlacedParameter<unknown>, raw)
  if (operation.body !== undefined)
    input['body'] = operation.body.fromJson(body as JsonValue, 'The body')
  return input as InputOf<Of>
}

function readParameter(
  { in: place, name, parameter }: PlacedParameter<unknown>,
  raw: RawParameters,
): unknown {
  if (place === 'path') return parameter.fromText(raw.path ?? '', name)
  if (place === 'header') {
    const text = raw.header(name)
    return text === null ? undefined : parameter.fromText(text, name)
  }
  const [text, ...others] = raw.query(name) ?? []
  if (others.length > 0)
    throw new Failure('input-invalid', `${name} must not be given more than once.`)
  return text === undefined ? undefined : parameter.fromText(text, name)
}

/** The versions that a browser already has, and the encodings that it can unpack. */
const pageTakes = {
  ifNoneMatch: { in: 'header', name: 'If-None-Match', parameter: anyText },
  acceptEncoding: { in: 'header', name: 'Accept-Encoding', parameter: anyText },
  /** The page that loads a file names its version, so the content under that URL never changes. */
  version: { in: 'query', name: 'v', parameter: anyText },
} as const

/** The answer to a browser that already has the page. */
export const notModifiedStatus = 304

/** A page for people, or a file that it loads: public, the same for everybody. */
function page(path: string, media: string): Operation<typeof pageTakes, undefined> {
  return {
    method: 'GET',
    path,
    access: 'public',
    summary: path,
    takes: pageTakes,
    body: undefined,
    success: { status: 200, description: path, media },
    refusals: [],
    unpublished: true,
  }
}

const json = 'application/json'
const bodyRefusals = ['media-type-unsupported', 'encoding-unsupported', 'body-too-large'] as const

export const operations = {
  createPlant: operation({
    method: 'POST',
    path: '/plants',
    access: 'plants:write',
    summary: 'Create a plant',
    description:
      'Adds a plant under an id of your choosing. A 200 means that the plant is durable. An id that is taken is refused with 409 and never overwritten; it is free again once its plant is deleted.',
    takes: { idempotencyKey: { in: 'header', name: 'Idempotency-Key', parameter: idempotencyKey } },
    body: newPlantShape,
    success: { status: 200, description: 'The plant is kept.', media: json, shape: 'Plant' },
    refusals: [
      'input-invalid',
      ...bodyRefusals,
      'id-taken',
      'idempotency-key-reused',
      'outcome-unknown',
    ],
  }),
  listPlants: operation({
    method: 'GET',
    path: '/plants',
    access: 'plants:read',
    summary: 'List plants',
    description:
      "Every plant of the caller's account in ascending order of id, or the first ones if `limit` is given. A list of up to 1,000 plants is one snapshot, as long as its text stays within 16 MiB. A longer one is streamed: a plant that is there throughout appears exactly once. A list that breaks off ends the connection without the closing bracket; with a `limit` above 1,000 that also happens when others create so many plants meanwhile that the limit would be exceeded.",
    takes: {
      limit: { in: 'query', name: 'limit', parameter: limit },
      after: { in: 'query', name: 'after', parameter: cursor },
    },
    body: undefined,
    success: {
      status: 200,
      description: 'The plants.',
      media: json,
      shape: 'Plants',
      header: {
        name: 'Link',
        description:
          'Where the list goes on (RFC 8288), when `limit` cut it. Relative to the request.',
        example: '</plants?limit=20&after=AAAAAAAAAAc>; rel="next"',
      },
    },
    refusals: ['input-invalid'],
  }),
  deletePlant: operation({
    method: 'DELETE',
    path: '/plants/{id}',
    access: 'plants:write',
    summary: 'Delete a plant',
    description: 'Removes one plant. A 204 means that it is durably gone.',
    takes: { id: { in: 'path', name: 'id', parameter: plantId } },
    body: undefined,
    success: { status: 204, description: 'The plant is gone.' },
    refusals: ['input-invalid', 'plant-missing', 'outcome-unknown'],
  }),
  livez: operation({
    method: 'GET',
    path: '/livez',
    access: 'public',
    summary: 'Is the process alive?',
    takes: {},
    body: undefined,
    success: { status: 200, description: 'It is.', media: json, shape: 'Health' },
    refusals: [],
  }),
  readyz: operation({
    method: 'GET',
    path: '/readyz',
    access: 'public',
    summary: 'Can the service do its work?',
    description:
      'Asks the store, its reader and its writer. Answers 503 while they do not answer, and while the service is stopping.',
    takes: {},
    body: undefined,
    success: { status: 200, description: 'It can.', media: json, shape: 'Health' },
    refusals: ['store-unavailable'],
  }),
  openapi: page('/openapi.json', 'application/json'),
  docs: page('/docs', 'text/html; charset=utf-8'),
  docsScript: page('/docs/reference.js', 'text/javascript; charset=utf-8'),
  docsStart: page('/docs/start.js', 'text/javascript; charset=utf-8'),
  home: operation({
    method: 'GET',
    path: '/',
    access: 'public',
    summary: 'Redirects to the reference',
    takes: {},
    body: undefined,
    success: { status: 302, description: 'The reference is at /docs.' },
    refusals: [],
    unpublished: true,
  }),
  /** Answered on every path that there is. */
  options: operation({
    method: 'OPTIONS',
    path: '*',
    access: 'public',
    summary: 'Which methods does this path take?',
    takes: {},
    body: undefined,
    success: { status: 204, description: 'The header Allow says.' },
    refusals: [],
    unpublished: true,
  }),
} as const

export type OperationId = keyof typeof operations
