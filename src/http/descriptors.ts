// Notices when the process runs out of file descriptors, and keeps some in reserve for the store and the log.
import { closeSync, openSync } from 'node:fs'

const reserveMax = 16
const lookMs = 250

export interface DescriptorEvents {
  /** There is none left. The reserve is free from now on. */
  readonly exhausted: () => void
  /** There are enough again, the reserve included. Answers whether the process could make use of them. */
  readonly available: () => boolean
}

/** Looks several times a second, and answers how to stop that. */
export function watchDescriptors({ exhausted, available }: DescriptorEvents): () => void {
  const reserve: number[] = []
  let isExhausted = false
  const free = (down: number): void => {
    for (const descriptor of reserve.splice(down)) closeSync(descriptor)
  }
  const look = (): void => {
    const hasEnough = take(reserve, isExhausted ? 2 * reserveMax : reserveMax + 1)
    free(hasEnough ? reserveMax : 0)
    if (hasEnough && isExhausted) isExhausted = !available()
    if (hasEnough || isExhausted) return
    isExhausted = true
    exhausted()
  }
  look()
  const timer = setInterval(look, lookMs).unref()
  return () => {
    clearInterval(timer)
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
