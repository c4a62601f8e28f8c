// Last step: a reply becomes a Response, and its end is told once, with the bytes that were sent.
import type { Ending, LongAnswers } from './longAnswers.ts'
import { type Reply, responseInit } from './reply.ts'
import type { Connections } from './server.ts'

export function respond(
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
