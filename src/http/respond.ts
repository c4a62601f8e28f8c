// Last step: a reply becomes a Response, and its end is told once, with the bytes that were sent.
import { type Reply, responseInit } from './reply.ts'

/** How an answer ended: `complete` is false where the client left or a list broke off, for which there is a `cause`. */
export interface Ending {
  readonly bytes: number
  readonly complete: boolean
  readonly cause?: unknown
}

export function respond(request: Request, reply: Reply, ended: (ending: Ending) => void): Response {
  const { body } = reply
  const init = responseInit(reply)
  const head = request.method === 'HEAD'
  if (body === null || typeof body === 'string' || body instanceof Uint8Array) {
    ended({ bytes: head || body === null ? 0 : Buffer.byteLength(body), complete: true })
    return new Response(body, init)
  }
  if (!head) return new Response(stream(body, ended), init)
  ended({ bytes: 0, complete: true })
  return new Response(new ReadableStream(), init)
}

const encoder = new TextEncoder()

/** Asks for the next part only when the connection has room for it. An error cuts the connection. */
function stream(parts: AsyncIterable<string>, ended: (ending: Ending) => void): ReadableStream<Uint8Array> {
  const iterator = parts[Symbol.asyncIterator]()
  let bytes = 0
  let open = true
  const end = (how: Omit<Ending, 'bytes'>): void => {
    if (open) ended({ bytes, ...how })
    open = false
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const { done, value } = await iterator.next()
      // The client may have left meanwhile.
      if (!open) return
      if (done) {
        end({ complete: true })
        controller.close()
        return
      }
      const chunk = encoder.encode(value)
      bytes += chunk.byteLength
      controller.enqueue(chunk)
    } catch (cause) {
      end({ complete: false, cause })
      controller.error(cause)
    }
  }
  const cancel = async (): Promise<void> => {
    end({ complete: false })
    await iterator.return?.()
  }
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}
