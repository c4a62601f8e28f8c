// Sends long answers so that slow readers fill no memory and nobody waits for them.
//
// A long answer leaves in pieces. A piece is made when its reader has taken the one before. The
// memory of all answers is counted: pieces that no reader has taken yet, and the plants for the
// next pieces. At the limit no piece is made until a reader takes one. Readers that have stood
// still for some seconds are then cut off, the one that has stood still longest first.
//
// A snapshot with much text takes memory before its first piece is sent, so it waits for room. The
// account that holds the least room comes first. A client that leaves meanwhile is not served.
//
// The work on long answers takes turns (http/pace.ts), so that short answers go between.
import type { Clock } from '../clock.ts'
import { Failure } from '../domain/failure.ts'
import type { Pace } from './pace.ts'
import { type Pieces, pieceBytes, type Room } from './reply.ts'

/**
 * How an answer ended. `complete` is false if the client left or was cut off, or if the list broke
 * off. Only a list that broke off has a `cause`.
 */
export interface Ending {
  readonly bytes: number
  readonly complete: boolean
  readonly cause?: unknown
}

/**
 * How long a reader may stand still. The network takes some megabytes ahead of its reader, so a
 * slow reader asks only every few seconds.
 */
const patienceMs = 5000
/** How long an answer waits for room, and how often it looks. */
const roomWaitMs = 10_000
const lookMs = 20
/** About what an answer under way takes beside its text. */
const answerBytes = 16 * 1024
/** Rooms leave these bytes to pieces, so that answers that have room can move on. */
const bytesBesideRooms = 16 * 1024 * 1024

interface UnderWay {
  heldBytes: number
  /** The time since which its last piece waits for the reader. */
  standingSinceMs: number
  readonly cutOff: () => void
}

interface WaitingForRoom {
  readonly account: string
  readonly bytes: number
  readonly endMs: number
  readonly isGone: () => boolean
  readonly resolve: (room: Room) => void
  readonly reject: (failure: Failure) => void
}

export class LongAnswers {
  readonly #waitingBytesMax: number
  readonly #pace: Pace
  readonly #clock: Clock
  #heldBytes = 0
  /**
   * Answers whose last piece waits for the reader. The one that has waited longest comes first.
   */
  readonly #standing = new Set<UnderWay>()
  /** How many answers are making their next piece. */
  #advancing = 0
  readonly #roomBytes = new Map<string, number>()
  #waitingForRoom: WaitingForRoom[] = []

  constructor(waitingBytesMax: number, pace: Pace, clock: Clock) {
    this.#clock = clock
    this.#waitingBytesMax = waitingBytesMax
    this.#pace = pace
  }

  /**
   * Sets memory aside for an account's answer. Rejects with `store-unavailable` if there is no room
   * in time, or if the client has left.
   */
  async room(account: string, bytes: number, isGone: () => boolean): Promise<Room> {
    const room = await new Promise<Room>((resolve, reject) => {
      this.#waitingForRoom.push({
        account,
        bytes,
        endMs: this.#clock.monotonicMs() + roomWaitMs,
        isGone,
        resolve,
        reject,
      })
      if (this.#waitingForRoom.length === 1) this.#giveRoom()
    })
    await this.#pace.turn(bytes)
    if (!isGone()) return room
    room.release()
    throw clientGone()
  }

  /** Streams an answer. Its room, if it has one, counts its source. `ended` is called once. */
  send(
    pieces: Pieces,
    room: Room | undefined,
    hangUp: () => void,
    ended: (ending: Ending) => void,
  ): ReadableStream<Uint8Array> {
    let sourceBytes = 0
    let sentBytes = 0
    let open = true
    const iterator = pieces((bytes) => {
      if (room === undefined) sourceBytes = bytes
    })[Symbol.asyncIterator]()
    const end = (how: Omit<Ending, 'bytes'>): void => {
      if (!open) return
      open = false
      this.#standing.delete(answer)
      this.#hold(answer, 0)
      room?.release()
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
    const answer: UnderWay = { heldBytes: 0, standingSinceMs: 0, cutOff }
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      // The reader has taken the piece before.
      this.#standing.delete(answer)
      if (open) this.#hold(answer, sourceBytes + answerBytes)
      await this.#pace.turn(pieceBytes)
      await this.#memory(() => open)
      this.#advancing += 1
      try {
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
        this.#hold(answer, sourceBytes + answerBytes + piece.byteLength)
        answer.standingSinceMs = this.#clock.monotonicMs()
        this.#standing.add(answer)
      } catch (cause) {
        end({ complete: false, cause })
        controller.error(cause)
      } finally {
        this.#advancing -= 1
      }
    }
    return new ReadableStream({ pull, cancel: leave }, { highWaterMark: 0 })
  }

  #hold(answer: UnderWay, bytes: number): void {
    this.#heldBytes += bytes - answer.heldBytes
    answer.heldBytes = bytes
  }

  /**
   * Waits until there is memory for a piece. If no reader could free any by reading, one answer
   * goes ahead.
   */
  async #memory(isOpen: () => boolean): Promise<void> {
    while (
      isOpen() &&
      this.#heldBytes > this.#waitingBytesMax &&
      this.#standing.size + this.#advancing > 0
    ) {
      if (!this.#cutSlowest()) await this.#clock.sleep(lookMs)
    }
  }

  /** Cuts off the reader that has stood still longest, if that is long enough. */
  #cutSlowest(): boolean {
    const [slowest] = this.#standing
    if (slowest === undefined || this.#clock.monotonicMs() - slowest.standingSinceMs < patienceMs)
      return false
    slowest.cutOff()
    return true
  }

  #giveRoom(): void {
    const held = (account: string): number => this.#roomBytes.get(account) ?? 0
    const nowMs = this.#clock.monotonicMs()
    const left = this.#waitingForRoom
      .toSorted((one, other) => held(one.account) - held(other.account))
      .filter((waiting) => {
        if (waiting.isGone()) waiting.reject(clientGone())
        else if (this.#hasRoom(waiting.bytes))
          waiting.resolve(this.#takeRoom(waiting.account, waiting.bytes))
        else if (nowMs > waiting.endMs) waiting.reject(noRoom())
        else return true
        return false
      })
    this.#waitingForRoom = left
    if (left.length > 0) this.#clock.after(lookMs, () => this.#giveRoom())
  }

  #hasRoom(bytes: number): boolean {
    const roomsMax = this.#waitingBytesMax - bytesBesideRooms
    const fits = (): boolean => {
      const rooms = this.#roomBytes.values().reduce((sum, held) => sum + held, 0)
      return rooms + bytes <= roomsMax && this.#heldBytes + bytes <= this.#waitingBytesMax
    }
    while (!fits()) if (!this.#cutSlowest()) return false
    return true
  }

  #takeRoom(account: string, bytes: number): Room {
    let taken = 0
    const shrink = (to: number): void => {
      this.#heldBytes += to - taken
      const left = (this.#roomBytes.get(account) ?? 0) + to - taken
      if (left > 0) this.#roomBytes.set(account, left)
      else this.#roomBytes.delete(account)
      taken = to
    }
    shrink(bytes)
    return { shrink, release: () => shrink(0) }
  }
}

const encoder = new TextEncoder()

function clientGone(): Failure {
  return new Failure('store-unavailable', 'The client has left; nothing was done.')
}

function noRoom(): Failure {
  return new Failure(
    'store-unavailable',
    'Too many long lists are under way; nothing was done, try again.',
  )
}
