// The connections to a host that are in use: how many there may be at once, and their end. Writes
// leave some to reads, because a write may stand still for as long as the database waits for a
// standby. A write that was given up keeps its connection for a while, so that not ever more of them
// wait in the server. It is counted apart, so that others may go on meanwhile. But if as many as
// writes may use are left behind already, it keeps its slot.
import type { PoolClient } from 'pg'
import type { Clock } from '../../../clock.ts'
import { destroy } from './connection.ts'
import { Fault, unsent } from './faults.ts'

/** A connection in use. */
export interface Slot {
  readonly client: PoolClient
  /** Lets another take this slot, if not too many are left behind. */
  leaveBehind(): void
  /** Once. Gives the connection back for others to use, or ends it if it is spent. */
  giveBack(isSpent: boolean): void
}

export class Slots {
  readonly #clock: Clock
  readonly #max: number
  readonly #writesMax: number
  readonly #inUse = new Set<PoolClient>()
  #used = 0
  #usedByWrites = 0
  #leftBehind = 0
  #waiting: { readonly writes: boolean; readonly resolve: () => void }[] = []

  constructor(max: number, clock: Clock) {
    this.#clock = clock
    this.#max = max
    this.#writesMax = Math.max(1, max - Math.ceil(max / 5))
  }

  /**
   * Takes a slot, and a connection for it. Rejects with a Fault if no slot is free for so long, or
   * as `connect` does.
   */
  async take(writes: boolean, waitMs: number, connect: () => Promise<PoolClient>): Promise<Slot> {
    await this.#room(writes, waitMs)
    const client = await connect().catch((error: unknown) => {
      this.#free(writes)
      throw error
    })
    this.#inUse.add(client)
    let isLeftBehind = false
    return {
      client,
      leaveBehind: () => {
        if (this.#leftBehind === this.#writesMax) return
        this.#leftBehind += 1
        isLeftBehind = true
        this.#free(writes)
      },
      giveBack: (isSpent) => {
        this.#inUse.delete(client)
        if (isSpent) destroy(client)
        client.release(isSpent)
        if (isLeftBehind) this.#leftBehind -= 1
        else this.#free(writes)
      },
    }
  }

  /** Cuts off all connections that are in use. */
  cut(): void {
    for (const client of this.#inUse) destroy(client)
  }

  async #room(writes: boolean, waitMs: number): Promise<void> {
    if (this.#has(writes)) this.#count(writes, 1)
    else
      await new Promise<void>((resolve, reject) => {
        const callOff = this.#clock.after(waitMs, () => {
          this.#waiting = this.#waiting.filter((other) => other !== waiting)
          reject(new Fault('all connections to the database are in use', unsent))
        })
        const waiting = { writes, resolve: () => resolve(callOff()) }
        this.#waiting.push(waiting)
      })
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
