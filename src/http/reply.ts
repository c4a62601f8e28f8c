// What an operation answers, in HTTP's terms, before it becomes a Response: a Reply, be it a success or
// a refusal.
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
  /** Less is needed than was asked for. */
  readonly shrink: (bytes: number) => void
  readonly release: () => void
}

/**
 * A body in pieces of some `pieceBytes`, begun at each call. It tells `holds` how many bytes it
 * keeps in memory for this one answer until the next piece is asked for.
 */
export type Pieces = (
  holds: (bytes: number) => void,
) => AsyncIterable<string | Uint8Array<ArrayBuffer>>

/** A body longer than this is sent in pieces. */
export const longAnswerBytes = 64 * 1024
export const pieceBytes = 16 * 1024

/** Bytes that all answers share, in pieces: nothing is held for one of them. */
export function inPieces(bytes: Uint8Array<ArrayBuffer>): Pieces {
  return async function* () {
    for (let start = 0; start < bytes.length; start += pieceBytes)
      yield bytes.subarray(start, start + pieceBytes)
  }
}

/** On every answer: no browser may take it for another type than it says. */
const everywhere = { 'x-content-type-options': 'nosniff' }

/** Headers of many answers, which nobody may change. */
export type SharedHeaders = Omit<Headers, 'set' | 'append' | 'delete'>

// Made once: a Response copies Headers for less than it takes to read them from an object.

/** On answers that belong to a caller or a moment: nobody may keep them. */
export const bareHeaders: SharedHeaders = new Headers({
  ...everywhere,
  'cache-control': 'no-store',
})

export const jsonHeaders = withHeaders(bareHeaders, { 'content-type': 'application/json' })

/** On pages, which are the same for everybody. */
export function pageHeaders(more: Readonly<Record<string, string>>): SharedHeaders {
  return new Headers({ ...everywhere, ...more })
}

/** What a Response is made with; it copies the headers. */
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

/** The reply that tells a caller of a failure. */
export function refuse({ refusal, detail }: Failure<Refusal>): Reply {
  const { status, sentence, header } = refusals[refusal]
  const headers =
    header === undefined
      ? jsonHeaders
      : withHeaders(jsonHeaders, { [header.name]: header.value(detail) })
  return { status, headers, body: errorJson(status, sentence(detail)) }
}
