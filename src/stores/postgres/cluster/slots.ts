// How many connections to a host are in use at once. Writes leave some to reads, because a write
// may stand still for as long as the database waits for a standby. A write that was given up keeps
// its connection for a while, so that not ever more of them wait in the server. It is counted
// apart, so that others may go on meanwhile. But if as many as writes may use are left behind
// already, it keeps its slot.
import type { Clock } from '../../../clock.ts'

export interface Slot {
  /** Lets another take this slot, if not too many are left behind. */
  leaveBehind(): void
  /** Once, when its connection is not used any more. */
  giveBack(): void
}

export class Slots {
  readonly #clock: Clock
  readonly #max: number
  readonly #writesMax: number
  #used = 0
  #usedByWrites = 0
  #leftBehind = 0
  #waiting: { readonly writes: boolean; readonly resolve: () => void }[] = []

  constructor(max: number, clock: Clock) {
    this.#clock = clock
    this.#max = max
    this.#writesMax = Math.max(1, max - Math.ceil(max / 5))
  }

  /** Rejects if no slot is free for so long. */
  async take(writes: boolean, waitMs: number): Promise<Slot> {
    if (this.#has(writes)) this.#count(writes, 1)
    else
      await new Promise<void>((resolve, reject) => {
        const callOff = this.#clock.after(waitMs, () => {
          this.#waiting = this.#waiting.filter((other) => other !== waiting)
          reject(new Error('all connections are in use'))
        })
        const waiting = { writes, resolve: () => resolve(callOff()) }
        this.#waiting.push(waiting)
      })
    let isLeftBehind = false
    return {
      leaveBehind: () => {
        if (this.#leftBehind === this.#writesMax) return
        this.#leftBehind += 1
        isLeftBehind = true
        this.#free(writes)
      },
      giveBack: () => {
        if (isLeftBehind) this.#leftBehind -= 1
        else this.#free(writes)
      },
    }
  }

  #free(writes: boolean): void {
    this.#count(writes, -1)
    // The first of those waiting that may go: reads pass by writes that may not.
    const next = this.#waiting.find((waiting) => this.#has(waiting.writes))
    if (next === undefined) return
    this.#waiting = this.#waiting.filter((other) => other !== next)
    this.#count(next.writes, 1)
    next.resolve()
  }

  #has(writes: boolean): boolean {
    return this.#used < this.#max && (!writes || this.#usedByWrites < this.#writesMax)
  }

  #count(writes: boolean, change: 1 | -1): void {
    this.#used += change
    if (writes) this.#usedByWrites += change
  }
}
