// Notices when the process runs out of file descriptors, and keeps some in reserve for the store
// and the log.

import { closeSync, openSync } from 'node:fs'
import type { Clock } from '../clock.ts'

const reserveMax = 16
const lookMs = 250
/**
 * Descriptors that must be free before connections are taken again: the reserve, and one each for
 * the listener, a connection and the next look.
 */
const backMin = reserveMax + 3
/**
 * Connections are taken again after this many looks at the soonest. Otherwise many clients could
 * make the service start and stop listening at every look.
 */
const looksUntilBack = 4

export interface DescriptorEvents {
  /** No descriptor is left. The reserve has been freed. */
  readonly exhausted: () => void
  /** Descriptors are free again beside the reserve. Returns whether the process could use them. */
  readonly available: () => boolean
}

/** Looks several times a second. Returns a function that ends that. */
export function watchDescriptors(
  { exhausted, available }: DescriptorEvents,
  clock: Clock,
): () => void {
  const reserve: number[] = []
  let isExhausted = false
  let looks = 0
  const free = (down: number): void => {
    for (const descriptor of reserve.splice(down)) closeSync(descriptor)
  }
  const look = (): void => {
    looks += 1
    const hasEnough = take(reserve, isExhausted ? backMin : reserveMax + 1)
    free(hasEnough ? reserveMax : 0)
    if (hasEnough && isExhausted && looks >= looksUntilBack) isExhausted = !available()
    if (hasEnough || isExhausted) return
    isExhausted = true
    looks = 0
    exhausted()
  }
  let callOff: () => void
  const lookOn = (): void => {
    look()
    callOff = clock.after(lookMs, lookOn)
  }
  lookOn()
  return () => {
    callOff()
    free(0)
  }
}

/** Opens descriptors until there are `count`. Returns whether that worked. */
function take(descriptors: number[], count: number): boolean {
  try {
    while (descriptors.length < count) descriptors.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  }
}
