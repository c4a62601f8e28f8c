// Third step, where an operation takes a body: its media type, its size, its bytes.
import type { Refusal } from '../contract/refusals.ts'
import { Failure } from '../domain/failure.ts'

const jsonType = /^application\/json[ \t]*(?:;|$)/i
const charset = /;[ \t]*charset *= *"?([^";]*)"?/i

/**
 * Refuses a body that is not declared as plain JSON in UTF-8. Without Content-Type it is read as
 * that.
 */
export function requireJson(headers: Headers): void {
  const type = headers.get('content-type')
  if (type !== null && type !== '' && type !== 'application/json' && !isJson(type)) {
    throw new Failure<Refusal>(
      'media-type-unsupported',
      'Content-Type must be application/json, in UTF-8.',
    )
  }
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding !== '' && encoding.toLowerCase() !== 'identity') {
    throw new Failure<Refusal>(
      'encoding-unsupported',
      'Content-Encoding must be identity or left out.',
    )
  }
}

function isJson(type: string): boolean {
  const declared = charset.exec(type)?.[1] ?? 'utf-8'
  return jsonType.test(type) && declared.trim().toLowerCase() === 'utf-8'
}

/**
 * A body up to this length is read as a whole, which costs less; it must be there before the
 * connection stands still.
 */
const wholeBytesMax = 1024

/**
 * The bytes of a body, at most `limitBytes`; beyond that the rest is not read. Calls `alive` at
 * each part that comes.
 */
export async function readBody(
  request: Request,
  limitBytes: number,
  alive: () => void,
): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (Number(declared) > limitBytes) throw tooLarge(limitBytes)
  try {
    if (declared !== null && Number(declared) <= wholeBytesMax)
      return new Uint8Array(await request.arrayBuffer())
    return await readChunks(request.body, limitBytes, alive)
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw new Failure<Refusal>('request-malformed', 'The body ended before it was complete.', {
      cause,
    })
  }
}

async function readChunks(
  body: ReadableStream<Uint8Array> | null,
  limitBytes: number,
  alive: () => void,
): Promise<Uint8Array> {
  if (body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks)
    alive()
    length += value.byteLength
    if (length > limitBytes) {
      await reader.cancel()
      throw tooLarge(limitBytes)
    }
    chunks.push(value)
  }
}

function tooLarge(limitBytes: number): Failure<Refusal> {
  return new Failure<Refusal>('body-too-large', `The body must not exceed ${limitBytes} bytes.`)
}
