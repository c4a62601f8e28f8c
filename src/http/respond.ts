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
  const releasing = (ending: Ending): void => {
    room?.release()
    ended(ending)
  }
  // The client may have left while its request was under way.
  const complete = !request.signal.aborted
  const isSent = complete && request.method !== 'HEAD'
  if (typeof body === 'function') {
    if (isSent)
      return new Response(
        longAnswers.send(body, () => connections.cut(request), releasing),
        init,
      )
    releasing({ bytes: 0, complete })
    return new Response(new ReadableStream(), init)
  }
  releasing({ bytes: body === null || !isSent ? 0 : Buffer.byteLength(body), complete })
  return new Response(body, init)
}
