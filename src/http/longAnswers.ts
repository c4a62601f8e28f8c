// Sends long answers so that slow readers fill no memory and nobody waits for them.
//
// A long answer leaves in pieces, and each is made when the reader has taken the one before. What waits in
// memory for readers is counted over all answers: the pieces, and what they are made of. If that exceeds the
// limit, the reader that has stood still longest is cut off. A snapshot of much text is read only when there is
// room for it. The work on long answers takes turns (domain/pace.ts), so that short ones go between.
import { Failure } from '../domain/failure.ts'
import type { Pace } from '../domain/pace.ts'
import { longAnswerBytes, type Pieces } from './reply.ts'

/** How an answer ended. `complete` is false if the client left or was cut off, or a list broke off, which then has a `cause`. */
export interface Ending {
  readonly bytes: number
  readonly complete: boolean
  readonly cause?: unknown
}

/** Memory that was set aside for one answer. */
export interface Room {
  /** Less is needed than was asked for. */
  readonly shrink: (bytes: number) => void
  readonly release: () => void
}

/** A reader that stands still for less is not cut off to make room for others. */
const patienceMs = 1000
/** How long an answer waits for room, and how often it looks. */
const roomWaitMs = 10_000
const roomPollMs = 20

interface UnderWay {
  heldBytes: number
  /** Since when its last piece waits for the reader. */
  waitingSinceMs: number
  readonly cutOff: () => void
}

export class LongAnswers {
  readonly #waitingBytesMax: number
  readonly #pace: Pace
  #heldBytes = 0
  /** Those whose last piece waits for the reader; the one that has stood still longest comes first. */
  readonly #standing = new Set<UnderWay>()
  #roomQueue: Promise<unknown> = Promise.resolve()

  constructor(waitingBytesMax: number, pace: Pace) {
    this.#waitingBytesMax = waitingBytesMax
    this.#pace = pace
  }

  /** Sets memory aside, one answer after another. Rejects with `store-unavailable` if there is none in time. */
  async room(bytes: number): Promise<Room> {
    const endMs = performance.now() + roomWaitMs
    const made = this.#roomQueue.then(() => this.#makeRoom(bytes, endMs))
    this.#roomQueue = made.catch(() => {})
    await made
    let heldBytes = bytes
    const shrink = (to: number): void => {
      this.#heldBytes -= heldBytes - to
      heldBytes = to
    }
    return { shrink, release: () => shrink(0) }
  }

  /** Streams an answer; `ended` is called once. */
  send(pieces: Pieces, hangUp: () => void, ended: (ending: Ending) => void): ReadableStream<Uint8Array> {
    let sourceBytes = 0
    let sentBytes = 0
    let open = true
    const iterator = pieces((bytes) => {
      sourceBytes = bytes
    })[Symbol.asyncIterator]()
    const end = (how: Omit<Ending, 'bytes'>): void => {
      if (!open) return
      open = false
      this.#standing.delete(answer)
      this.#hold(answer, 0)
      ended({ bytes: sentBytes, ...how })
    }
    const leave = (): void => {
      end({ complete: false })
      void iterator.return?.()
    }
    const cutOff = (): void => {
      leave()
      hangUp()
    }
    const answer: UnderWay = { heldBytes: 0, waitingSinceMs: 0, cutOff }
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      this.#standing.delete(answer)
      try {
        await this.#pace.turn(longAnswerBytes)
        const { done, value } = await iterator.next()
        // The client may have left meanwhile.
        if (!open) return
        if (done) {
          end({ complete: true })
          controller.close()
          return
        }
        const piece = typeof value === 'string' ? encoder.encode(value) : value
        sentBytes += piece.byteLength
        controller.enqueue(piece)
        this.#handedOver(answer, sourceBytes + piece.byteLength)
      } catch (cause) {
        end({ complete: false, cause })
        controller.error(cause)
      }
    }
    return new ReadableStream({ pull, cancel: leave }, { highWaterMark: 0 })
  }

  #handedOver(answer: UnderWay, heldBytes: number): void {
    this.#hold(answer, heldBytes)
    answer.waitingSinceMs = performance.now()
    this.#standing.add(answer)
    for (const slowest of this.#standing) {
      if (this.#heldBytes <= this.#waitingBytesMax) return
      slowest.cutOff()
    }
  }

  #hold(answer: UnderWay, bytes: number): void {
    this.#heldBytes += bytes - answer.heldBytes
    answer.heldBytes = bytes
  }

  async #makeRoom(bytes: number, endMs: number): Promise<void> {
    while (this.#heldBytes + bytes > this.#waitingBytesMax) {
      const nowMs = performance.now()
      const [slowest] = this.#standing
      if (slowest !== undefined && nowMs - slowest.waitingSinceMs > patienceMs) slowest.cutOff()
      else if (nowMs > endMs)
        throw new Failure('store-unavailable', 'Too many long lists are under way; nothing was done, try again.')
      else await new Promise((resolve) => setTimeout(resolve, roomPollMs))
    }
    this.#heldBytes += bytes
    await this.#pace.turn(bytes)
  }
}

const encoder = new TextEncoder()
