// The time of tests: two clocks that a test moves, so that deadlines, retries and expiry are exact
// and nobody waits for them; and how to wait for what takes real time.
import { type Clock, systemClock } from '../../src/clock.ts'

interface Timer {
  readonly atMs: number
  readonly work: () => void
}

/** Stands still until a test moves it. */
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

/**
 * Runs as the system's clock does, for services on real sockets, and a test moves it on besides.
 * The wall time moves by the test alone, so that what expires does so exactly.
 */
export class RunningClock implements Clock {
  #wallMs = Date.UTC(2030, 0, 1, 12)
  #aheadMs = 0
  readonly #timers = new Set<Timer>()

  readonly wallMs = (): number => this.#wallMs
  readonly monotonicMs = (): number => systemClock.monotonicMs() + this.#aheadMs

  readonly after = (delayMs: number, work: () => void): (() => void) => {
    const timer = {
      atMs: this.monotonicMs() + delayMs,
      work: () => {
        callOff()
        work()
      },
    }
    const callOffInSystem = systemClock.after(delayMs, timer.work)
    const callOff = (): void => {
      callOffInSystem()
      this.#timers.delete(timer)
    }
    this.#timers.add(timer)
    return callOff
  }

  readonly sleep = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      this.after(delayMs, resolve)
    })

  /** Moves on at once; timers that are due then call back, in their order. */
  advance(ms: number): void {
    this.#wallMs += ms
    this.#aheadMs += ms
    const nowMs = this.monotonicMs()
    const due = [...this.#timers].filter(({ atMs }) => atMs <= nowMs)
    // One that calls back may call off another.
    for (const timer of due.toSorted((one, other) => one.atMs - other.atMs))
      if (this.#timers.has(timer)) timer.work()
  }
}

/** Resolves when all that can be done without further time or input is done. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Looks again and again until something holds; rejects if that takes longer. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = 20_000,
): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`${what}: not even after ${timeoutMs / 1000} s`)
    await Bun.sleep(10)
  }
}
