// From a batch of writes to the writer and back: the batch and its outcome cross as JSON text,
// which costs the two threads less than the structured clone of as many objects.
import { nothingDone, writeUncertain } from '../../failures.ts'
import type { Commit } from '../../groupCommit.ts'
import type { BatchOutcome, Outcome, Write } from './batch.ts'

/** Takes a batch to the writer and brings back what became of it. */
export interface Channel {
  /**
   * Resolves once a writer can take a batch: a new one if the last has died. Rejects if there is
   * none.
   */
  readonly ready: () => Promise<void>
  /** Rejects if the writer dies meanwhile. */
  readonly send: (batch: string) => Promise<string>
  readonly close: () => Promise<void>
}

export function commitThrough(channel: Channel): Commit<Write, Outcome> {
  return async (batch) => {
    await channel.ready().catch((cause) => {
      throw nothingDone(cause)
    })
    const text = await channel.send(JSON.stringify(batch)).catch((cause) => {
      throw writeUncertain(cause)
    })
    const result = JSON.parse(text) as BatchOutcome
    if ('outcomes' in result) return result.outcomes
    throw result.undone
      ? nothingDone(new Error(result.failed))
      : writeUncertain(new Error(result.failed))
  }
}

/** How much text a write holds, in UTF-16 code units. */
export function textOf(write: Write): number {
  let length = 0
  for (const part of write) length += typeof part === 'string' ? part.length : 0
  return length
}
