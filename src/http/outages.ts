// Tells the operator of an outage of the store: one line when it begins and one when it has ended,
// with the number of requests that failed. Reads and writes may fail apart from each other.
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'

/** An outage has ended if work succeeds this long after the last failure. */
const quietMs = 1000

interface Outage {
  readonly beganMs: number
  lastMs: number
  failures: number
}

export class Outages {
  readonly #log: Log
  readonly #clock: Clock
  readonly #underWay = new Map<string, Outage>()

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** `what` names the work that failed, in the words of both log lines. */
  failed(what: string, cause: unknown): void {
    const nowMs = this.#clock.monotonicMs()
    const outage = this.#underWay.get(what)
    if (outage !== undefined) {
      outage.lastMs = nowMs
      outage.failures += 1
      return
    }
    this.#underWay.set(what, { beganMs: nowMs, lastMs: nowMs, failures: 1 })
    this.#log.warn(`${what} began to fail`, cause)
  }

  /** `what` names the work that succeeded; absent: all work. */
  worked(what?: string): void {
    if (this.#underWay.size === 0) return
    const nowMs = this.#clock.monotonicMs()
    for (const [name, { beganMs, lastMs, failures }] of this.#underWay) {
      if ((what !== undefined && name !== what) || nowMs - lastMs < quietMs) continue
      this.#underWay.delete(name)
      this.#log.note(
        `${name} work again after ${Math.round((nowMs - beganMs) / 1000)} s; ${failures} failed`,
      )
    }
  }
}
