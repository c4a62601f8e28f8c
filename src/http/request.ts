// Reads a request: its operation, its token, its parameters and its body. These are the first steps
// of http/answer.ts, in their order.
import { type JsonValue, readJson } from '../contract/json.ts'
import {
  type Operation,
  type OperationId,
  operations,
  type RawParameters,
} from '../contract/operations.ts'
import type { Refusal } from '../contract/refusals.ts'
import { Failure } from '../domain/failure.ts'

/** The operation that a request means, and the raw parameters of its target. */
export interface Route {
  readonly id: OperationId
  readonly operation: Operation
  /** The last segment of the path, percent-decoded, if the path template ends in a parameter. */
  readonly pathParameter: string | undefined
  readonly query: string
  /** The methods that the path takes, as the header Allow says it. */
  readonly allow: string
}

interface Path {
  readonly template: string
  readonly byMethod: ReadonlyMap<string, OperationId>
  readonly allow: string
}

/** Every path by its template; the parameter that ends one is written "{}". */
const paths = new Map<string, Path>()
const declared = Object.entries(operations) as [OperationId, Operation][]
for (const [template, own] of Map.groupBy(declared, ([, { path }]) => path)) {
  // OPTIONS is an operation of every path, and "*" is no path of its own.
  if (template === '*') continue
  const byMethod = new Map<string, OperationId>()
  for (const [id, { method }] of own) {
    byMethod.set(method, id)
    if (method === 'GET') byMethod.set('HEAD', id)
  }
  byMethod.set('OPTIONS', 'options')
  const path = { template, byMethod, allow: [...byMethod.keys()].join(', ') }
  paths.set(template.replace(/\{[^}]*\}$/, '{}'), path)
}

/** The methods of RFC 9110, PATCH and QUERY get 405 on a path that lacks them; all others 501. */
const knownMethods = new Set(
  'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT QUERY'.split(' '),
)

/** Finds the operation by method and target. Throws a Failure if there is none. */
export function match(request: Request): Route {
  const target = targetOf(request)
  const question = target.indexOf('?')
  const pathname = question === -1 ? target : target.slice(0, question)
  const query = question === -1 ? '' : target.slice(question + 1)
  const slash = pathname.lastIndexOf('/') + 1
  const last = pathname.slice(slash)
  const path =
    paths.get(pathname) ?? (last === '' ? undefined : paths.get(`${pathname.slice(0, slash)}{}`))
  if (path === undefined) throw new Failure<Refusal>('path-unknown')
  const id = path.byMethod.get(request.method)
  if (id === undefined)
    throw knownMethods.has(request.method)
      ? new Failure<Refusal>('method-not-allowed', path.allow)
      : new Failure<Refusal>('method-unknown')
  let pathParameter: string | undefined
  if (path.template.endsWith('}')) {
    try {
      pathParameter = decodeURIComponent(last)
    } catch {
      // It stays as it is, and the contract refuses it.
      pathParameter = last
    }
  }
  return { id, operation: operations[id], pathParameter, query, allow: path.allow }
}

const authority = /^(?:[A-Za-z0-9._~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/

/**
 * Path and query of a request. Only HTTP/1.0 may leave Host out: the HTTP layer itself refuses
 * HTTP/1.1 without it. It joins two Host headers with a comma, which no host name holds.
 */
function targetOf({ url, headers }: Request): string {
  const host = headers.get('host')
  if (host !== null && !authority.test(host)) throw new Failure<Refusal>('request-malformed')
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  if (start === -1 || (start > 0 && !url.startsWith('http'))) {
    throw new Failure<Refusal>('request-malformed', 'The request target must be a path.')
  }
  return start === 0 ? url : url.slice(start)
}

/**
 * The token in `Authorization: Bearer TOKEN` (RFC 6750, section 2.1); the scheme's name in any
 * case. `Bearer` alone is no token.
 */
export function bearerToken(authorization: string | null): string {
  const token = authorization === null ? undefined : /^bearer +(\S.*)$/i.exec(authorization)?.[1]
  if (token === undefined) throw new Failure('token-missing')
  return token
}

/** The parameters of a request as they came, for the contract to read. */
export function rawParameters({ headers }: Request, route: Route): RawParameters {
  return {
    path: route.pathParameter,
    query: (name) => queryValues(route.query, name),
    header: (name) => headers.get(name) ?? undefined,
  }
}

/**
 * The values under a name in a query, in their order
 * (https://url.spec.whatwg.org/#urlencoded-parsing).
 */
export function queryValues(query: string, name: string): readonly string[] {
  // URLSearchParams costs as much as reading a page from the store, and only escapes need it.
  if (query.includes('%') || query.includes('+')) return new URLSearchParams(query).getAll(name)
  const values: string[] = []
  for (let start = 0; start < query.length; ) {
    const next = query.indexOf('&', start)
    const end = next === -1 ? query.length : next
    if (query.startsWith(name, start)) {
      const nameEnd = start + name.length
      if (nameEnd === end) values.push('')
      else if (query.charAt(nameEnd) === '=') values.push(query.slice(nameEnd + 1, end))
    }
    start = end + 1
  }
  return values
}

/** A body above this takes its turn with the other long work. */
const largeBytes = 16 * 1024

/**
 * A body up to this length is read as a whole, which costs less. All of it must come within the
 * time for which a connection may stand still.
 */
const wholeBytesMax = 1024

/**
 * Reads a body of at most `limitBytes` as JSON; the rest of a longer one is not read. `alive` is
 * called at each part of the body, and `takeTurn` before the work on a large body.
 */
export async function readJsonBody(
  request: Request,
  limitBytes: number,
  alive: () => void,
  takeTurn: (bytes: number) => Promise<void>,
): Promise<JsonValue> {
  requireJson(request.headers)
  const declared = request.headers.get('content-length')
  if (Number(declared) > limitBytes) throw tooLarge(limitBytes)
  let body: Uint8Array
  try {
    body =
      declared !== null && Number(declared) <= wholeBytesMax
        ? new Uint8Array(await request.arrayBuffer())
        : await readParts(request.body, limitBytes, alive)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    const sentence = 'The body ended before it was complete.'
    throw new Failure<Refusal>('request-malformed', sentence, { cause })
  }
  if (body.length > largeBytes) await takeTurn(body.length)
  return readJson(body)
}

/** A body without Content-Type is read as JSON in UTF-8; any other type or charset is refused. */
function requireJson(headers: Headers): void {
  const type = headers.get('content-type') || 'application/json'
  if (type !== 'application/json') {
    const [, charset = 'utf-8'] = /;[ \t]*charset *= *"?([^";]*)"?/i.exec(type) ?? []
    const isJson = /^application\/json[ \t]*(?:;|$)/i.test(type)
    if (!isJson || charset.trim().toLowerCase() !== 'utf-8')
      throw new Failure<Refusal>('media-type-unsupported')
  }
  const encoding = headers.get('content-encoding') || 'identity'
  if (encoding.toLowerCase() !== 'identity') throw new Failure<Refusal>('encoding-unsupported')
}

async function readParts(
  body: ReadableStream<Uint8Array> | null,
  limitBytes: number,
  alive: () => void,
): Promise<Uint8Array> {
  if (body === null) return new Uint8Array()
  const parts: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(parts)
    alive()
    length += value.byteLength
    if (length > limitBytes) {
      await reader.cancel()
      throw tooLarge(limitBytes)
    }
    parts.push(value)
  }
}

function tooLarge(limitBytes: number): Failure<Refusal> {
  return new Failure<Refusal>('body-too-large', String(limitBytes))
}
