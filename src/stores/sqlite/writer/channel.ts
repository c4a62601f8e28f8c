// The HTTP thread's end of the writer's thread: one batch under way at a time, and a new writer
// after one that died.
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../clock.ts'
import { nothingDone, writeUncertain } from '../../failures.ts'
import type { Commit } from '../../groupCommit.ts'
import { type BatchOutcome, encode, type Outcome, type Write, type WriterData } from './crossing.ts'

/** Takes one batch at a time to the writer. */
export interface Channel {
  readonly commit: Commit<Write, Outcome>
  readonly close: () => Promise<void>
}

/**
 * A writer is started no sooner than this after the one before it, be it that it died or that it
 * could not start.
 */
const restartMs = 1000

/**
 * Starts the writer on a store that is prepared. Resolves once it can write, rejects if it cannot.
 */
export async function openChannel(
  data: WriterData,
  clock: Clock,
  warn: (message: string, cause: unknown) => void,
): Promise<Channel> {
  let startedMs = clock.monotonicMs()
  let writer = new Writer(data)
  await writer.started
  /** Why the last writer that could write has died, until another one can. */
  let died: Error | undefined
  return {
    commit: async (batch) => {
      await follow().catch((cause) => {
        throw nothingDone(cause)
      })
      const outcome = await writer.send(encode(batch)).catch((cause) => {
        throw writeUncertain(cause)
      })
      return outcomesOf(JSON.parse(outcome) as BatchOutcome)
    },
    close: () => writer.close(),
  }

  /** Puts a new writer in the place of one that died; rejects if there is none. */
  async function follow(): Promise<void> {
    if (writer.death === undefined) return
    died ??= writer.death
    if (clock.monotonicMs() - startedMs < restartMs) throw writer.death
    startedMs = clock.monotonicMs()
    writer = new Writer(data)
    await writer.started
    warn('the writer of the store had died; a new one takes over', died)
    died = undefined
  }
}

/** The outcome of each write; throws a Failure if none of them counts. */
export function outcomesOf(outcome: BatchOutcome): readonly Outcome[] {
  if ('outcomes' in outcome) return outcome.outcomes
  const cause = new Error(outcome.failed)
  throw outcome.undone ? nothingDone(cause) : writeUncertain(cause)
}

class Writer {
  /** Why it can take nothing any more, or undefined while it can. */
  death: Error | undefined
  readonly #worker: Worker
  #underWay = Promise.withResolvers<string>()
  /** The writer says so itself, once its database is open. */
  readonly started: Promise<unknown> = this.#underWay.promise
  readonly #ended: Promise<void>

  constructor(data: WriterData) {
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData: data })
    this.#worker.on('message', (outcome: string) => this.#underWay.resolve(outcome))
    this.#worker.on('error', (error) => this.#die(error as Error))
    this.#ended = new Promise((resolve) => {
      this.#worker.on('exit', () => {
        this.#die(new Error('the writer has ended'))
        resolve()
      })
    })
  }

  send(batch: string): Promise<string> {
    this.#underWay = Promise.withResolvers()
    if (this.death === undefined) this.#worker.postMessage(batch)
    else this.#underWay.reject(this.death)
    return this.#underWay.promise
  }

  async close(): Promise<void> {
    if (this.death !== undefined) return
    this.#worker.postMessage(null)
    await this.#ended
  }

  #die(error: Error): void {
    this.death ??= error
    this.#underWay.reject(this.death)
  }
}
