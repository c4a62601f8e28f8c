// The whole way of a request, in its one order: match, identify, read, operate, respond. Each step
// refuses by throwing a Failure, and this is the only place that makes an answer of one.
import { type JsonValue, readJson } from '../contract/json.ts'
import { type RawParameters, readInput } from '../contract/operations.ts'
import type { Refusal } from '../contract/refusals.ts'
import { type Caller, requireScope } from '../domain/authenticate.ts'
import type { Failure } from '../domain/failure.ts'
import { type Scope, withoutTokens } from '../domain/token.ts'
import type { RequestEntry } from '../log.ts'
import type { Context, Limits } from './context.ts'
import { type Handled, handlers } from './handlers.ts'
import { identify } from './identify.ts'
import { match, type Route } from './match.ts'
import { queryValues } from './query.ts'
import { readBody, requireJson } from './readBody.ts'
import { asFailure, refuse } from './refuse.ts'
import { type Reply, withHeaders } from './reply.ts'
import { respond } from './respond.ts'

export function answerer(context: Context): (request: Request) => Promise<Response> {
  return async function answer(request) {
    const requestId = sentRequestId(request.headers)
    const entry = beginEntry(request, requestId ?? context.newRequestId())
    let reply: Reply
    try {
      const route = match(request)
      entry.route = route.operation.path
      const { access, body } = route.operation
      const caller = access === 'public' ? undefined : await identified(request, access, context)
      entry.account = caller?.account
      const json = body === undefined ? undefined : await readJsonBody(request, context.limits)
      const input = readInput(route.operation, rawParameters(request, route), json)
      reply = await handle({ context, route, caller, input })
    } catch (error) {
      const failure = asFailure(error)
      logCause(failure, entry, context)
      reply = refuse(failure)
    }
    const closing = context.isStopping() || leavesMuchUnread(request, context.limits)
    return respond(request, withOwnHeaders(reply, requestId, closing), (ending) => {
      if (ending.cause !== undefined) logCause(asFailure(ending.cause), entry, context)
      context.log.request(entry, reply.status, ending)
    })
  }
}

function beginEntry({ method }: Request, requestId: string): RequestEntry {
  return { startedMs: performance.now(), requestId, method, route: undefined, account: undefined }
}

function identified({ headers }: Request, scope: Scope, { store, turn, nowMs }: Context): Promise<Caller> {
  const authorization = headers.get('authorization')
  return turn.share(`caller ${scope} ${authorization}`, async () => {
    const caller = await identify(authorization, store, nowMs())
    requireScope(caller, scope)
    return caller
  })
}

async function readJsonBody(request: Request, { bodyBytesMax }: Limits): Promise<JsonValue> {
  requireJson(request.headers)
  return readJson(await readBody(request, bodyBytesMax))
}

function rawParameters({ headers }: Request, { pathParameter, query }: Route): RawParameters {
  return { path: pathParameter, query: (name) => queryValues(query, name), header: (name) => headers.get(name) }
}

/** The table of handlers is typed entry by entry; which entry this is, only the route knows. */
function handle(handled: { [Part in keyof Handled]: unknown } & { readonly route: Route }): Reply | Promise<Reply> {
  const handler = handlers[handled.route.id] as (handled: unknown) => Reply | Promise<Reply>
  return handler(handled)
}

/** Logs what the caller is not told: the defect or the outage behind a refusal. */
function logCause({ refusal, message, cause }: Failure<Refusal>, { requestId }: RequestEntry, { log }: Context): void {
  if (cause !== undefined && refusal !== 'request-malformed') log.failure(message, { requestId, cause })
}

/** A body that was not read and may be large is not waited for: the connection ends with the answer. */
function leavesMuchUnread({ headers, bodyUsed }: Request, { bodyBytesMax }: Limits): boolean {
  if (bodyUsed) return false
  const declared = headers.get('content-length')
  return declared === null ? headers.get('transfer-encoding') !== null : Number(declared) > bodyBytesMax
}

/** The request id goes back to the client that sent one; `closing` says that the connection ends with this answer. */
function withOwnHeaders(reply: Reply, requestId: string | undefined, closing: boolean): Reply {
  if (requestId === undefined && !closing) return reply
  const own = { ...(requestId === undefined ? {} : { 'X-Request-Id': requestId }), ...(closing ? { Connection: 'close' } : {}) }
  return { ...reply, headers: withHeaders(reply.headers, own) }
}

function sentRequestId(headers: Headers): string | undefined {
  const sent = headers.get('x-request-id')
  return sent !== null && /^[!-~]{1,128}$/.test(sent) && withoutTokens(sent) === sent ? sent : undefined
}
