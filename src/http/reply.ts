// A Reply: an answer in HTTP's terms, a success or a refusal, before it becomes a Response.
import { errorJson } from '../contract/plants.ts'
import { type Refusal, refusals } from '../contract/refusals.ts'
import { Failure } from '../domain/failure.ts'

export interface Reply {
  readonly status: number
  readonly headers: SharedHeaders
  readonly body: string | Uint8Array<ArrayBuffer> | Pieces | null
  /** The memory that was set aside for a body in pieces. */
  readonly room?: Room
}

/** Memory that was set aside for one answer. */
export interface Room {
  /** Keeps only so many bytes, if the answer needs less than it asked for. */
  readonly shrink: (bytes: number) => void
  readonly release: () => void
}

/**
 * A body in pieces of about `pieceBytes`. Each call begins it again. It tells `holds` how many
 * bytes it keeps in memory for this one answer until the next piece is asked for.
 */
export type Pieces = (
  holds: (bytes: number) => void,
) => AsyncIterable<string | Uint8Array<ArrayBuffer>>

/** A body longer than this is sent in pieces. */
export const longAnswerBytes = 64 * 1024
export const pieceBytes = 16 * 1024

/** Bytes that all answers share, in pieces. No answer holds memory of its own. */
export function inPieces(bytes: Uint8Array<ArrayBuffer>): Pieces {
  return async function* () {
    for (let start = 0; start < bytes.length; start += pieceBytes)
      yield bytes.subarray(start, start + pieceBytes)
  }
}

/** On every answer: no browser may guess another type than the declared one. */
const everywhere = { 'x-content-type-options': 'nosniff' }

/** Headers that many answers share, so nobody may change them. */
export type SharedHeaders = Omit<Headers, 'set' | 'append' | 'delete'>

// Made once, because a Response copies Headers faster than it reads them from an object.

/** On answers that are for one caller or one moment: nobody may cache them. */
export const bareHeaders: SharedHeaders = new Headers({
  ...everywhere,
  'cache-control': 'no-store',
})

export const jsonHeaders = withHeaders(bareHeaders, { 'content-type': 'application/json' })

/** On pages, which are the same for everybody and may be cached. */
export function pageHeaders(more: Readonly<Record<string, string>>): SharedHeaders {
  return new Headers({ ...everywhere, ...more })
}

/** The status and headers for a new Response, which copies the headers. */
export function responseInit({ status, headers }: Reply): ResponseInit {
  return { status, headers: headers as Headers }
}

/** The same headers and some more. */
export function withHeaders(
  headers: SharedHeaders,
  more: Readonly<Record<string, string>>,
): SharedHeaders {
  const all = new Headers(headers as Headers)
  for (const [name, value] of Object.entries(more)) all.set(name, value)
  return all
}

/** Anything but a Failure is a defect: logged in full, hidden from the caller. */
export function asFailure(error: unknown): Failure<Refusal> {
  if (error instanceof Failure) return error as Failure<Refusal>
  return new Failure<Refusal>('internal', refusals.internal.sentence(''), { cause: error })
}

/** The reply that tells a caller about a failure. */
export function refuse({ refusal, detail }: Failure<Refusal>): Reply {
  const { status, sentence, header } = refusals[refusal]
  const headers =
    header === undefined
      ? jsonHeaders
      : withHeaders(jsonHeaders, { [header.name]: header.value(detail) })
  return { status, headers, body: errorJson(status, sentence(detail)) }
}
