// The parts of the service that every request needs: the store, the clock, the limits, the log.
import type { Clock } from '../clock.ts'
import { bodyBytesMax } from '../contract/plants.ts'
import type { Store } from '../domain/store.ts'
import type { Log } from '../log.ts'
import type { LongAnswers } from './longAnswers.ts'
import type { Pace } from './pace.ts'
import type { Pages } from './pages.ts'

/** Bounds on what one request may cost. */
export interface Limits {
  readonly bodyBytesMax: number
  /**
   * How long a connection may stand still. The HTTP layer has a deadline of its own for headers
   * that trickle in.
   */
  readonly idleSeconds: number
  /** Most bytes that wait in memory for the slow readers of all long answers together. */
  readonly waitingBytesMax: number
}

export const defaultLimits: Limits = {
  bodyBytesMax,
  idleSeconds: 60,
  waitingBytesMax: 50 * 1024 * 1024,
}

export interface Context {
  readonly store: Store
  readonly log: Log
  /** Hears of every request that has ended, as the log does. */
  readonly requestEnded: Log['request']
  readonly limits: Limits
  /** What goes before a path in links: a URL without a slash at its end, or nothing. */
  readonly publicUrl: string
  readonly pages: Pages
  readonly pace: Pace
  readonly longAnswers: LongAnswers
  readonly clock: Clock
  /** The id of a request that came without an X-Request-Id. */
  readonly newRequestId: () => string
  /** Whether the service has begun to stop. */
  readonly isStopping: () => boolean
}
