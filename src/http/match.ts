// First step of a request: from method and target to the operation that is meant.
import { type Operation, type OperationId, operations } from '../contract/operations.ts'
import type { Refusal } from '../contract/refusals.ts'
import { Failure } from '../domain/failure.ts'

/** The operation that a request means, and the raw parameters of its target. */
export interface Route {
  readonly id: OperationId
  readonly operation: Operation
  /** The last segment of the path, percent-decoded, where the path template ends in a parameter. */
  readonly pathParameter: string | undefined
  readonly query: string
  /** The methods that the path takes, as the header Allow says it. */
  readonly allow: string
}

interface Path {
  readonly template: string
  readonly byMethod: Map<string, OperationId>
  readonly allow: string
}

/**
 * The methods of RFC 9110, PATCH and QUERY: refused on a path that lacks them, while others are
 * unknown everywhere.
 */
const knownMethods = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'QUERY',
])

const { exact, prefixes } = indexPaths()

export function match(request: Request): Route {
  const target = targetOf(request)
  const question = target.indexOf('?')
  const pathname = question === -1 ? target : target.slice(0, question)
  const query = question === -1 ? '' : target.slice(question + 1)
  const slash = pathname.lastIndexOf('/') + 1
  const path =
    exact.get(pathname) ??
    (slash < pathname.length ? prefixes.get(pathname.slice(0, slash)) : undefined)
  if (path === undefined)
    throw new Failure<Refusal>(
      'path-unknown',
      'Nothing is at this path; /docs shows what there is.',
    )
  const id = operationFor(path, request.method)
  const pathParameter = path.template.endsWith('}') ? decode(pathname.slice(slash)) : undefined
  return { id, operation: operations[id], pathParameter, query, allow: path.allow }
}

function operationFor(path: Path, method: string): OperationId {
  const id = path.byMethod.get(method)
  if (id !== undefined) return id
  if (!knownMethods.has(method))
    throw new Failure<Refusal>('method-unknown', 'The method is not known.')
  throw new Failure<Refusal>(
    'method-not-allowed',
    `The path takes these methods only: ${path.allow}.`,
    { detail: path.allow },
  )
}

const authority = /^(?:[A-Za-z0-9._~!$&'()*+;=%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/

/**
 * Path and query of a request. HTTP/1.0 may leave Host out, HTTP/1.1 may not: the HTTP layer
 * refuses that by itself, and joins two of them with a comma, which no host name holds.
 */
function targetOf({ url, headers }: Request): string {
  const host = headers.get('host')
  if (host !== null && !authority.test(host)) {
    throw new Failure<Refusal>('request-malformed', 'Host must name this server exactly once.')
  }
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  if (start === -1 || (start > 0 && !url.startsWith('http'))) {
    throw new Failure<Refusal>('request-malformed', 'The request target must be a path.')
  }
  return start === 0 ? url : url.slice(start)
}

/**
 * Percent-decoding; what cannot be decoded stays as it is, for the parameter's own check to refuse.
 */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function indexPaths(): { exact: Map<string, Path>; prefixes: Map<string, Path> } {
  const exact = new Map<string, Path>()
  const prefixes = new Map<string, Path>()
  for (const template of new Set(Object.values(operations).map((operation) => operation.path))) {
    if (template === '*') continue
    const path = pathOf(template)
    if (template.endsWith('}')) prefixes.set(template.slice(0, template.lastIndexOf('/') + 1), path)
    else exact.set(template, path)
  }
  return { exact, prefixes }
}

function pathOf(template: string): Path {
  const byMethod = new Map<string, OperationId>()
  for (const [id, operation] of Object.entries(operations) as [OperationId, Operation][]) {
    if (operation.path === template) byMethod.set(operation.method, id)
    if (operation.path === template && operation.method === 'GET') byMethod.set('HEAD', id)
  }
  byMethod.set('OPTIONS', 'options')
  return { template, byMethod, allow: [...byMethod.keys()].join(', ') }
}
