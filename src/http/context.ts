// What every request is answered with: the store, the clock, the limits, the log.
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
   * How long a connection may stand still. Headers that trickle are cut off by the HTTP layer's own
   * clock.
   */
  readonly idleSeconds: number
  /** What may wait in memory for slow readers of long answers, over all of them. */
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
  readonly limits: Limits
  readonly pages: Pages
  readonly pace: Pace
  readonly longAnswers: LongAnswers
  readonly clock: Clock
  /** Names a request that came without an X-Request-Id. */
  readonly newRequestId: () => string
  /** Turns true when the service has begun to stop. */
  readonly isStopping: () => boolean
}
