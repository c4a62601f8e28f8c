// Time, handed in. main.ts hands the system's clock to all who need one; a test hands in a clock
// that it moves by hand, and so sees deadlines, retries and expiry exactly and at once.

export interface Clock {
  /** Unix time in milliseconds, as people read it. It may be set forward or back. */
  readonly wallMs: () => number
  /** Milliseconds since some moment. It only moves forward, so durations and deadlines use it. */
  readonly monotonicMs: () => number
  /** Calls back once, after so long. Answers how to call that off. */
  readonly after: (delayMs: number, work: () => void) => () => void
  /** Resolves after so long. */
  readonly sleep: (delayMs: number) => Promise<void>
}

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs, work) => {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
  sleep: (delayMs) => new Promise((resolve) => setTimeout(resolve, delayMs)),
}

/** A moment of Unix time with its calendar, for people to read. */
export function dateOf(wallMs: number): Date {
  return new Date(wallMs)
}
