// From a batch of writes to the writer and back: the batch and its outcome cross as JSON text, which
// costs the two threads less than the structured clone of as many objects.
import { nothingDone, writeUncertain } from '../failures.ts'
import type { Commit } from '../groupCommit.ts'
import type { BatchOutcome, Outcome, Write } from './batchWriter.ts'

/** Takes a batch to the writer and brings back what became of it. */
export interface Channel {
  readonly send: (batch: string) => Promise<string>
  readonly close: () => Promise<void>
  /** Why the writer can take nothing any more, or undefined while it can. */
  readonly failure: () => Error | undefined
}

export function commitThrough(channel: Channel): Commit<Write, Outcome> {
  return async (batch) => {
    const result = await sent(channel, batch)
    if ('outcomes' in result) return result.outcomes
    throw result.undone ? nothingDone(result.failed) : writeUncertain(result.failed)
  }
}

async function sent(channel: Channel, batch: readonly Write[]): Promise<BatchOutcome> {
  const dead = channel.failure()
  if (dead !== undefined) return { failed: dead.message, undone: true }
  try {
    return JSON.parse(await channel.send(JSON.stringify(batch)))
  } catch (error) {
    return { failed: String(error), undone: false }
  }
}

/** How much text a write holds, in UTF-16 code units. */
export function textOf(write: Write): number {
  let length = 0
  for (const part of write) length += typeof part === 'string' ? part.length : 0
  return length
}
