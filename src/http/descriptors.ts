// Notices when the process runs out of file descriptors, and keeps some in reserve for the store
// and the log.

import { closeSync, openSync } from 'node:fs'
import type { Clock } from '../clock.ts'

const reserveMax = 16
const lookMs = 250
/**
 * Free at least before connections are taken again: for the listener, for a connection, and for the
 * next look.
 */
const backMin = reserveMax + 3
/**
 * Connections are taken again after so many looks at the soonest, or clients in plenty would have
 * it change with each look.
 */
const looksUntilBack = 4

export interface DescriptorEvents {
  /** There is none left. The reserve is free from now on. */
  readonly exhausted: () => void
  /**
   * There are some again beside the reserve. Answers whether the process could make use of them.
   */
  readonly available: () => boolean
}

/** Looks several times a second, and answers how to stop that. */
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

/** Opens descriptors until there are so many; answers whether that worked. */
function take(descriptors: number[], count: number): boolean {
  try {
    while (descriptors.length < count) descriptors.push(openSync('/dev/null', 'r'))
    return true
  } catch {
    return false
  }
}
