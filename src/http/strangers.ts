// Bounds the log's lines of strangers: of requests that are answered before a valid token was seen.
// Anybody may send as many as the network takes, and their lines would fill the disk.
import type { Clock } from '../clock.ts'
import type { Log, RequestEntry } from '../log.ts'

/** Most lines of one client in a second. */
const linesOfClientMax = 10
/** Most lines of all strangers in a second, because a client may have many addresses. */
const linesMax = 100
const secondMs = 1000

export class Strangers {
  readonly #log: Log
  readonly #clock: Clock
  /** How many lines each client got in this second. There are no more clients than lines. */
  readonly #linesOf = new Map<string | undefined, number>()
  #lines = 0
  #leftOut = 0

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  /** Whether a request gets a line. Those that get none are counted in one. */
  mayHaveLine({ account, client }: Pick<RequestEntry, 'account' | 'client'>): boolean {
    if (account !== undefined) return true
    if (this.#lines === 0) this.#clock.after(secondMs, () => this.#endSecond())
    const lines = this.#linesOf.get(client) ?? 0
    if (lines === linesOfClientMax || this.#lines === linesMax) {
      this.#leftOut += 1
      return false
    }
    this.#linesOf.set(client, lines + 1)
    this.#lines += 1
    return true
  }

  #endSecond(): void {
    if (this.#leftOut > 0)
      this.#log.note(
        `requests without a valid token that have no line: ${this.#leftOut} in a second`,
      )
    this.#linesOf.clear()
    this.#lines = 0
    this.#leftOut = 0
  }
}
