// The HTTP thread's end of the writer's thread.
//
// A commit waits for the disk, and a thread that waits for the disk answers nobody. So each store
// has a second thread with a connection of its own (thread.ts), and the HTTP thread keeps to reads,
// which its connection answers from the page cache: in WAL mode they see the last commit and wait
// for no writer. stores/groupCommit.ts makes the batches, and sends the next one only when the last
// is settled. So at most one batch is ever under way here, and an answer needs no number.
//
// A batch crosses as one text (crossing.ts), is applied in one transaction, and its outcomes come
// back as one text. The thread answers that nothing was done if it failed before the commit took
// effect, and otherwise that nobody knows.
//
// A thread may die. The batch that was under way then counts as unknown, and those that follow as
// not done, until another writer can take over: one is started for the first batch that comes a
// second or more after the start of the last. It opens only the very files that the store was
// opened with.
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
