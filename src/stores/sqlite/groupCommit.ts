// Group commit: the writes that arrive while one batch is being committed form the next batch, so
// they share a sync of the disk. Each still gets an outcome of its own.
import { Failure } from '../../domain/failure.ts'
import type { BatchOutcome, Outcome, Write } from './batchWriter.ts'

/**
 * Takes a batch to the writer and brings back what became of it, both as JSON text, which costs the
 * threads less than the structured clone of as many objects.
 */
export interface Channel {
  readonly send: (batch: string) => Promise<string>
  readonly close: () => Promise<void>
  /** Why the writer can take nothing any more, or undefined while it can. */
  readonly failure: () => Error | undefined
}

/** Most writes, and most text (in UTF-16 code units), in one batch: what one commit may hold up others for. */
const batchWritesMax = 1000
const batchTextMax = 4 * 1024 * 1024
/** Most text that may wait for its batch; beyond that a write is refused rather than memory filled. */
const waitingTextMax = 64 * 1024 * 1024

interface Waiting {
  readonly write: Write
  readonly textLength: number
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (failure: Failure) => void
}

export class GroupCommit {
  readonly #channel: Channel
  #waiting: Waiting[] = []
  #waitingText = 0
  #committing: Promise<void> | undefined

  constructor(channel: Channel) {
    this.#channel = channel
  }

  /** Settles once the write is durable, or with a Failure: `store-unavailable` or `outcome-unknown`. */
  submit(write: Write): Promise<Outcome> {
    const textLength = lengthOf(write)
    if (this.#waitingText + textLength > waitingTextMax) {
      return Promise.reject(
        new Failure('store-unavailable', 'The store has too many writes waiting; nothing was done, try again.'),
      )
    }
    this.#waitingText += textLength
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, textLength, resolve, reject })
      this.#committing ??= this.#commitAll()
    })
  }

  /** Finishes what was submitted. */
  async close(): Promise<void> {
    await this.#committing
    await this.#channel.close()
  }

  async #commitAll(): Promise<void> {
    // The requests that were read together with this one join its batch.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch()
      settle(batch, await this.#commit(batch))
    }
    this.#committing = undefined
  }

  async #commit(batch: readonly Waiting[]): Promise<BatchOutcome> {
    const dead = this.#channel.failure()
    if (dead !== undefined) return { failed: dead.message, undone: true }
    try {
      return JSON.parse(await this.#channel.send(JSON.stringify(batch.map(({ write }) => write))))
    } catch (error) {
      return { failed: String(error), undone: false }
    }
  }

  #takeBatch(): Waiting[] {
    let text = 0
    let end = 0
    while (end < this.#waiting.length && end < batchWritesMax && text < batchTextMax) {
      text += this.#waiting[end]?.textLength ?? 0
      end += 1
    }
    this.#waitingText -= text
    return this.#waiting.splice(0, end)
  }
}

function settle(batch: readonly Waiting[], result: BatchOutcome): void {
  if ('outcomes' in result) {
    batch.forEach(({ resolve }, index) => {
      resolve(result.outcomes[index] ?? 0)
    })
    return
  }
  const failure = result.undone
    ? new Failure('store-unavailable', 'The store is not available; nothing was done, try again.', { cause: result.failed })
    : new Failure('outcome-unknown', 'The store failed while writing; whether it was done is not known, try again.', {
        cause: result.failed,
      })
  for (const { reject } of batch) reject(failure)
}

function lengthOf(write: Write): number {
  let length = 0
  for (const part of write) length += typeof part === 'string' ? part.length : 0
  return length
}
