// The whole walk of a request, in its one order: match, identify, read, operate, respond. Each step
// refuses by throwing a Failure. This file catches it and makes its answer.
import type { JsonValue } from '../contract/json.ts'
import { type OperationId, readInput } from '../contract/operations.ts'
import type { Refusal } from '../contract/refusals.ts'
import { authenticate, requireScope } from '../domain/access.ts'
import type { Failure } from '../domain/failure.ts'
import { type Scope, withoutTokens } from '../domain/token.ts'
import type { RequestEntry } from '../log.ts'
import type { Context, Limits } from './context.ts'
import { type Handled, handlers } from './handlers.ts'
import type { Ending, LongAnswers } from './longAnswers.ts'
import { Outages } from './outages.ts'
import { asFailure, longAnswerBytes, type Reply, refuse, responseInit } from './reply.ts'
import { bearerToken, match, type Route, rawParameters, readJsonBody } from './request.ts'
import type { Connections } from './server.ts'

export type Answer = (request: Request, connections: Connections) => Promise<Response>

export function answerer(context: Context): Answer {
  const outages = new Outages(context.log, context.clock)
  return async function answer(request, connections) {
    const entry = beginEntry(request, connections, context)
    let route: Route | undefined
    let reply: Reply
    try {
      route = match(request)
      entry.route = route.operation.path
      const { access, body } = route.operation
      const caller =
        access === 'public'
          ? undefined
          : await authenticate(
              context.store.tokens,
              bearerToken(request.headers.get('authorization')),
              context.clock.wallMs(),
            )
      entry.account = caller?.account
      if (caller !== undefined) requireScope(caller, access as Scope)
      const json = body === undefined ? undefined : await readJson(request, context, connections)
      const input = readInput(route.operation, rawParameters(request, route), json)
      reply = await handle({ context, route, caller, input, isGone: () => request.signal.aborted })
      if (isLarge(reply)) await context.pace.turn(longAnswerBytes)
      // Readiness proves that the store reads and writes. Other public operations do not ask it.
      if (route.id === 'readyz') outages.worked()
      else if (caller !== undefined) outages.worked(workOf(route))
    } catch (error) {
      const failure = asFailure(error)
      logCause(failure)
      reply = refuse(failure)
    }
    const closing = context.isStopping() || leavesMuchUnread(request, context.limits)
    const response = respond(request, reply, context.longAnswers, connections, (ending) => {
      if (ending.cause !== undefined) logCause(asFailure(ending.cause))
      const status = ending.complete || ending.bytes > 0 ? reply.status : undefined
      if (route === undefined || !probes.has(route.id)) context.log.request(entry, status, ending)
    })
    response.headers.set('x-request-id', entry.requestId)
    if (closing) response.headers.set('connection', 'close')
    return response

    /** Logs the defect or the outage behind a refusal, of which the caller is not told. */
    function logCause({ refusal, message, cause }: Failure<Refusal>): void {
      if (cause === undefined || refusal === 'request-malformed') return
      if (refusal === 'internal')
        context.log.failure(message, { requestId: entry.requestId, cause })
      else outages.failed(workOf(route), cause)
    }
  }
}

/** An answer above this, in bytes or UTF-16 code units, takes its turn with the other long work. */
const largeMin = 16 * 1024

function isLarge({ body }: Reply): boolean {
  return body !== null && typeof body !== 'function' && body.length > largeMin
}

/** Machines ask these every few seconds, and their lines in the log would hide the others. */
const probes: ReadonlySet<OperationId> = new Set(['livez', 'readyz'])

/** What the log's lines on outages call the work of a request. */
function workOf(route: Route | undefined): string {
  const access = route?.operation.access
  if (access === 'plants:read') return 'reads'
  return access === 'plants:write' ? 'writes' : 'probes of readiness'
}

function beginEntry(
  request: Request,
  connections: Connections,
  { newRequestId, clock }: Context,
): RequestEntry {
  const { method, headers } = request
  const requestId = sentRequestId(headers) ?? newRequestId()
  return {
    startedMs: clock.monotonicMs(),
    requestId,
    method,
    client: connections.addressOf(request),
    route: undefined,
    account: undefined,
  }
}

function readJson(
  request: Request,
  { limits, pace }: Context,
  { keepOpen }: Connections,
): Promise<JsonValue> {
  return readJsonBody(request, limits.bodyBytesMax, () => keepOpen(request), pace.turn)
}

/** Only the route knows which handler this is, so the compiler cannot check the types here. */
function handle(
  handled: { [Part in keyof Handled]: unknown } & { readonly route: Route },
): Reply | Promise<Reply> {
  const handler = handlers[handled.route.id] as (handled: unknown) => Reply | Promise<Reply>
  return handler(handled)
}

/** The service does not wait for an unread body that may be large: it closes the connection. */
function leavesMuchUnread({ headers, bodyUsed }: Request, { bodyBytesMax }: Limits): boolean {
  if (bodyUsed) return false
  const declared = headers.get('content-length')
  return declared === null
    ? headers.get('transfer-encoding') !== null
    : Number(declared) > bodyBytesMax
}

function sentRequestId(headers: Headers): string | undefined {
  const sent = headers.get('x-request-id')
  return sent !== null && /^[!-~]{1,128}$/.test(sent) && withoutTokens(sent) === sent
    ? sent
    : undefined
}

/** Turns a reply into a Response. `ended` is called once, with the number of bytes sent. */
function respond(
  request: Request,
  reply: Reply,
  longAnswers: LongAnswers,
  connections: Connections,
  ended: (ending: Ending) => void,
): Response {
  const { body, room } = reply
  const init = responseInit(reply)
  // The client may have left while its request was under way.
  const complete = !request.signal.aborted
  const isSent = complete && request.method !== 'HEAD'
  if (typeof body === 'function' && isSent) {
    const hangUp = (): void => connections.cut(request)
    return new Response(longAnswers.send(body, room, hangUp, ended), init)
  }
  room?.release()
  if (typeof body === 'function') {
    ended({ bytes: 0, complete })
    return new Response(new ReadableStream(), init)
  }
  ended({ bytes: body === null || !isSent ? 0 : Buffer.byteLength(body), complete })
  return new Response(body, init)
}
