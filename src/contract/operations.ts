// Every operation, declared once: its route, its access, its parameters and its answer. Types,
// parsers and the OpenAPI document all come from this file.
import type { Scope } from '../domain/token.ts'
import { type JsonValue, refuseInput } from './json.ts'
import { anyText, count, formatted, type Member, type Parameter } from './kinds.ts'
import { cursor, newPlantShape, plantId } from './plants.ts'
import type { Refusal } from './refusals.ts'

type PlacedParameters = Readonly<
  Record<
    string,
    {
      readonly in: 'path' | 'query' | 'header'
      readonly name: string
      readonly parameter: Parameter<unknown>
    }
  >
>

export interface Operation<
  Takes extends PlacedParameters = PlacedParameters,
  Body extends Member<unknown> | undefined = Member<unknown> | undefined,
> {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
  /** A path template with at most one parameter, as its last segment. */
  readonly path: string
  /** The scope that a caller needs, or `public` if no token is needed. */
  readonly access: Scope | 'public'
  readonly summary: string
  readonly description?: string
  readonly takes: Takes
  readonly body: Body
  /** What it answers if it succeeds. */
  readonly success: {
    readonly status: number
    readonly description: string
    /** The name of the published shape of a body in JSON. */
    readonly shape?: 'Plant' | 'Plants' | 'Health'
    /** A real body, for the OpenAPI document. */
    readonly example?: unknown
    /** The media type of a body that has no published shape. */
    readonly media?: string
    readonly header?: {
      readonly name: string
      readonly description: string
      readonly example: string
    }
  }
  /** Its refusals beside those that every operation has. */
  readonly refusals: readonly Refusal[]
  /** Left out of the OpenAPI document: pages for people. */
  readonly unpublished?: true
}

/** The typed input of an operation. A path parameter is always there; others may be absent. */
export type InputOf<Of> =
  Of extends Operation<infer Takes, infer Body>
    ? {
        readonly [Name in keyof Takes]: Takes[Name]['parameter'] extends Parameter<infer Value>
          ? Value | (Takes[Name]['in'] extends 'path' ? never : undefined)
          : never
      } & (Body extends Member<infer Value> ? { readonly body: Value } : unknown)
    : never

/** The parameters of a request as text. `query` returns every value under a name. */
export interface RawParameters {
  readonly path: string | undefined
  readonly query: (name: string) => readonly string[]
  readonly header: (name: string) => string | undefined
}

/** Reads an operation's input. Throws a Failure that names what is wrong. */
export function readInput<Of extends Operation>(
  operation: Of,
  raw: RawParameters,
  body: JsonValue | undefined,
): InputOf<Of> {
  const input: Record<string, unknown> = {}
  for (const key in operation.takes) {
    const { in: place, name, parameter } = operation.takes[key] as PlacedParameters[string]
    const [text, ...others] =
      place === 'query' ? raw.query(name) : [place === 'path' ? raw.path : raw.header(name)]
    if (others.length > 0) refuseInput(`${name} must not be given more than once.`)
    input[key] = text === undefined ? undefined : parameter.fromText(text, name)
  }
  if (operation.body !== undefined)
    input['body'] = operation.body.fromJson(body as JsonValue, 'The body')
  return input as InputOf<Of>
}

/** The answer to a browser that already has the page. */
export const notModifiedStatus = 304

export const operations = {
  createPlant: operation({
    method: 'POST',
    path: '/plants',
    access: 'plants:write',
    summary: 'Create a plant',
    description:
      'Adds a plant under an id of your choosing. A 200 means that the plant is durable. An id that is taken is refused with 409 and never overwritten; it is free again once its plant is deleted.',
    takes: {
      idempotencyKey: {
        in: 'header',
        name: 'Idempotency-Key',
        parameter: formatted(
          /^(?!""$)(?:[!-~]{1,255}|"[!-~]{1,255}")$/,
          '1 to 255 visible ASCII characters, bare or in double quotes',
          (value) => (/^"..*"$/.test(value) ? value.slice(1, -1) : value),
          {
            description:
              'Makes a retry safe: a repeat with the same key and the same plant gets the first answer again, as long as that plant exists. Quoted or bare.',
            examples: ['"5f2c9d1e-create-7"'],
          },
        ),
      },
    },
    body: newPlantShape,
    success: {
      status: 200,
      description: 'The plant is kept.',
      shape: 'Plant',
      example: { name: 'Monstera deliciosa', tag: 'indoor' },
    },
    refusals: [
      'input-invalid',
      'media-type-unsupported',
      'encoding-unsupported',
      'body-too-large',
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
      limit: {
        in: 'query',
        name: 'limit',
        parameter: count({
          description: 'Maximum number of plants to return. Absent: every plant.',
          examples: [20],
        }),
      },
      after: { in: 'query', name: 'after', parameter: cursor },
    },
    body: undefined,
    success: {
      status: 200,
      description: 'The plants.',
      shape: 'Plants',
      example: [{ name: 'Monstera deliciosa', tag: 'indoor' }, { name: 'Ginkgo biloba' }],
      header: {
        name: 'Link',
        description:
          'Where the list goes on (RFC 8288), when `limit` cut it. Relative to the request, if it is no full URL.',
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
    success: { status: 200, description: 'It is.', shape: 'Health', example: { status: 'alive' } },
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
    success: { status: 200, description: 'It can.', shape: 'Health', example: { status: 'ready' } },
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

/** A page for people, or a file that it loads: public, the same for everybody. */
function page(path: string, media: string) {
  return operation({
    method: 'GET',
    path,
    access: 'public',
    summary: path,
    takes: {
      // The versions that a browser already has, and the encodings that it can unpack.
      ifNoneMatch: { in: 'header', name: 'If-None-Match', parameter: anyText },
      acceptEncoding: { in: 'header', name: 'Accept-Encoding', parameter: anyText },
      // The page that loads a file names its version, so the content under that URL never changes.
      version: { in: 'query', name: 'v', parameter: anyText },
    },
    body: undefined,
    success: { status: 200, description: path, media },
    refusals: [],
    unpublished: true,
  })
}

function operation<const Takes extends PlacedParameters, Body extends Member<unknown> | undefined>(
  declared: Operation<Takes, Body>,
): Operation<Takes, Body> {
  return declared
}
