// The whole walk of a request, in its one order: match, identify, read, operate, respond. Each step
// refuses by throwing a Failure. This file catches it and makes its answer.
import { readInput } from '../contract/operations.ts'
import type { Refusal } from '../contract/refusals.ts'
import { authenticate, type Caller, requireScope } from '../domain/access.ts'
import type { Failure } from '../domain/failure.ts'
import { withoutTokens } from '../domain/token.ts'
import type { RequestEntry } from '../log.ts'
import type { Context, Limits } from './context.ts'
import { handlers } from './handlers.ts'
import type { Ending, LongAnswers } from './longAnswers.ts'
import { Outages } from './outages.ts'
import { asFailure, longAnswerBytes, type Reply, refuse, responseInit } from './reply.ts'
import { bearerToken, match, type Route, rawParameters, readJsonBody } from './request.ts'
import type { Connections } from './server.ts'

export type Answer = (request: Request, connections: Connections) => Promise<Response>

export function answerer(context: Context): Answer {
  const { store, clock, limits, pace, log, requestEnded } = context
  const outages = new Outages(log, clock)
  return async function answer(request, connections) {
    const entry = beginEntry(request, connections, context)
    let route: Route | undefined
    let reply: Reply
    try {
      route = match(request)
      entry.operation = route.id
      entry.route = route.operation.path
      const { access, body } = route.operation
      let caller: Caller | undefined
      if (access !== 'public') {
        const token = bearerToken(request.headers.get('authorization'))
        caller = await authenticate(store.tokens, token, clock.wallMs())
        entry.account = caller.account
        entry.tokenId = caller.tokenId
        requireScope(caller, access)
      }
      const alive = (): void => connections.keepOpen(request)
      const json =
        body === undefined
          ? undefined
          : await readJsonBody(request, limits.bodyBytesMax, alive, pace.turn)
      const input = readInput(route.operation, rawParameters(request, route), json)
      const isGone = (): boolean => request.signal.aborted
      // Only the route knows which handler this is, so the compiler cannot check the types here.
      const handler = handlers[route.id] as (handled: unknown) => Reply | Promise<Reply>
      reply = await handler({ context, route, caller, input, isGone })
      if (isLarge(reply)) await pace.turn(longAnswerBytes)
      // Readiness proves that the store reads and writes. Other public operations do not ask it.
      if (route.id === 'readyz') outages.worked()
      else if (caller !== undefined) outages.worked(workOf(route))
    } catch (error) {
      const failure = asFailure(error)
      logCause(failure)
      entry.refusal = failure.refusal
      reply = refuse(failure)
    }
    const closing = context.isStopping() || leavesMuchUnread(request, limits)
    const response = respond(request, reply, context.longAnswers, connections, (ending) => {
      if (ending.cause !== undefined) logCause(asFailure(ending.cause))
      const status = ending.complete || ending.bytes > 0 ? reply.status : undefined
      requestEnded(entry, status, ending)
    })
    response.headers.set('x-request-id', entry.requestId)
    if (closing) response.headers.set('connection', 'close')
    return response

    /** Logs the defect or the outage behind a refusal, of which the caller is not told. */
    function logCause({ refusal, message, cause }: Failure<Refusal>): void {
      if (cause === undefined || refusal === 'request-malformed') return
      if (refusal === 'internal') log.failure(message, { requestId: entry.requestId, cause })
      else outages.failed(workOf(route), cause)
    }
  }
}

/** An answer above this, in bytes or UTF-16 code units, takes its turn with the other long work. */
const largeMin = 16 * 1024

function isLarge({ body }: Reply): boolean {
  return body !== null && typeof body !== 'function' && body.length > largeMin
}

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
  const sentId = request.headers.get('x-request-id')
  const isUsable =
    sentId !== null && /^[!-~]{1,128}$/.test(sentId) && withoutTokens(sentId) === sentId
  return {
    startedMs: clock.monotonicMs(),
    requestId: isUsable ? sentId : newRequestId(),
    method: request.method,
    client: connections.addressOf(request),
    operation: undefined,
    route: undefined,
    account: undefined,
    tokenId: undefined,
    refusal: undefined,
  }
}

/** The service does not wait for an unread body that may be large: it closes the connection. */
function leavesMuchUnread({ headers, bodyUsed }: Request, { bodyBytesMax }: Limits): boolean {
  if (bodyUsed) return false
  const declared = headers.get('content-length')
  return declared === null
    ? headers.get('transfer-encoding') !== null
    : Number(declared) > bodyBytesMax
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
