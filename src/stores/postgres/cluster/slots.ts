// How many connections to a host are in use at once. Writes leave some to reads, because a write
// may stand still for as long as the database waits for a standby.
import type { Clock } from '../../../clock.ts'

export class Slots {
  readonly #clock: Clock
  readonly #max: number
  readonly #writesMax: number
  #used = 0
  #usedByWrites = 0
  #waiting: { readonly writes: boolean; readonly resolve: () => void }[] = []

  constructor(max: number, clock: Clock) {
    this.#clock = clock
    this.#max = max
    this.#writesMax = Math.max(1, max - Math.ceil(max / 5))
  }

  /** Resolves to the function that gives the slot back; rejects if none is free for so long. */
  async take(writes: boolean, waitMs: number): Promise<() => void> {
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
    return () => {
      this.#count(writes, -1)
      // The first of those waiting that may go: reads pass by writes that may not.
      const next = this.#waiting.find((waiting) => this.#has(waiting.writes))
      if (next === undefined) return
      this.#waiting = this.#waiting.filter((other) => other !== next)
      this.#count(next.writes, 1)
      next.resolve()
    }
  }

  #has(writes: boolean): boolean {
    return this.#used < this.#max && (!writes || this.#usedByWrites < this.#writesMax)
  }

  #count(writes: boolean, change: 1 | -1): void {
    this.#used += change
    if (writes) this.#usedByWrites += change
  }
}
