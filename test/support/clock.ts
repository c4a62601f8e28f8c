// A clock that stands still until a test moves it: deadlines, retries and expiry become exact, and
// nobody waits for them.
import type { Clock } from '../../src/clock.ts'

interface Timer {
  readonly atMs: number
  readonly work: () => void
}

export class ManualClock implements Clock {
  #nowMs = 0
  readonly #startMs: number
  #timers: Timer[] = []

  /** Unix time at which it begins. */
  constructor(startMs = Date.UTC(2030, 0, 1, 12)) {
    this.#startMs = startMs
  }

  readonly wallMs = (): number => this.#startMs + this.#nowMs
  readonly monotonicMs = (): number => this.#nowMs

  readonly after = (delayMs: number, work: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + delayMs, work }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  readonly sleep = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      this.after(delayMs, resolve)
    })

  /** How long until each timer calls back, the next one first. */
  get delaysMs(): readonly number[] {
    return this.#timers.map(({ atMs }) => atMs - this.#nowMs).toSorted((one, other) => one - other)
  }

  /** Moves on; each timer on the way calls back at its time, and what it sets off is done first. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await settled()
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#timers = this.#timers.filter((other) => other !== next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.work()
      await settled()
    }
    this.#nowMs = endMs
    await settled()
  }

  #next(endMs: number): Timer | undefined {
    const due = this.#timers.filter(({ atMs }) => atMs <= endMs)
    return due.toSorted((one, other) => one.atMs - other.atMs)[0]
  }
}

/** Resolves when all that can be done without further time or input is done. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
