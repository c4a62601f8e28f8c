// The store on SQLite: reads on the caller's thread, which the page cache answers, and writes in
// batches on a thread of their own, which waits for the disk.
import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import type { Failure } from '../../domain/failure.ts'
import type { Copyable, Store } from '../../domain/store.ts'
import { nothingDone } from '../failures.ts'
import { GroupCommit, WriteQuota } from '../groupCommit.ts'
import type { Committed, StoreOptions } from '../location.ts'
import { createLength, writeLengthMin } from '../plants.ts'
import { closingOnError, connect, onceUnlocked, reading } from './connection.ts'
import {
  findLoss,
  type Place,
  placeOfFile,
  placeOfLog,
  prepareFile,
  refuseLostLog,
} from './file.ts'
import type { SqliteLocation } from './location.ts'
import { SqlitePlants } from './plants.ts'
import { sqliteRefusal } from './refusal.ts'
import { migrate } from './schema.ts'
import { SqliteTokens } from './tokens.ts'
import { type Channel, openChannel } from './writer/channel.ts'
import type { Outcome, SendWrite, Write } from './writer/crossing.ts'

/** While commits fail, one is tried this often. */
const retryMs = 1000

/** Opens the store in a file. Rejects with Refused if it cannot serve. */
export async function openSqliteStore(
  location: SqliteLocation,
  options: StoreOptions,
): Promise<Store> {
  const { path } = location
  const { clock, warn, committed } = options
  try {
    await prepareFile(path, options)
    await refuseLostLog(path, clock)
    const file = placeOfFile(path)
    const database = await connect(path, clock)
    return await closingOnError(database, async () => {
      await onceUnlocked(database, clock, () => migrate(database))
      const place = [...file, ...placeOfLog(path)]
      const channel = await openChannel({ path, place }, clock, warn)
      return new SqliteStore(database, channel, place, clock, committed)
    })
  } catch (error) {
    throw sqliteRefusal(location, error)
  }
}

export class SqliteStore implements Store {
  readonly plants: SqlitePlants
  readonly tokens: SqliteTokens
  readonly kept: Copyable
  readonly #database: DatabaseSync
  readonly #channel: Channel
  readonly #place: Place
  readonly #clock: Clock
  readonly #committed: Committed | undefined
  readonly #quota = new WriteQuota()
  readonly #writes: GroupCommit<Write, Outcome>
  /** Why the last commit failed, until one has succeeded. */
  #failing: unknown
  #callOffRetry: (() => void) | undefined
  #closed: Promise<void> | undefined

  constructor(
    database: DatabaseSync,
    channel: Channel,
    place: Place,
    clock: Clock,
    committed?: Committed,
  ) {
    this.#database = database
    this.#channel = channel
    this.#place = place
    this.#clock = clock
    this.#committed = committed
    this.#writes = new GroupCommit((batch) => this.#commit(batch), {
      clock,
      quota: this.#quota,
      lengthOf: (write) =>
        write.kind === 'createPlant' ? createLength(write.plant) : writeLengthMin,
    })
    this.plants = new SqlitePlants(database, this.#write, clock)
    this.tokens = new SqliteTokens(database, this.#write)
    this.kept = keptBy(this.plants, this.tokens)
  }

  async ready(): Promise<void> {
    // Asking would say nothing new, and would wait behind what fails.
    if (this.#failing !== undefined) throw nothingDone(this.#failing)
    this.plants.nthId('', undefined, 1)
    await this.#write({ kind: 'probe' })
  }

  waitingWrites(): number {
    return this.#quota.writes
  }

  /** Of the file, its log and the log's index. */
  bytes(): number {
    // By identity, because a symbolic link stands beside the file that it leads to.
    const files = new Map(this.#place.map(({ identity, file }) => [identity, file])).values()
    return reading(() => files.reduce((bytes, file) => bytes + statSync(file).size, 0))
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.#writes.finish()
    this.#callOffRetry?.()
    await this.#channel.close()
    // As in writer/thread.ts: the log by that name may be another file's.
    if (findLoss(this.#place) === undefined) this.#database.close()
  }

  readonly #write: SendWrite = (write) => {
    // A write that concerns no account, such as a probe, is counted for the account ''.
    const account = 'account' in write ? write.account : 'token' in write ? write.token.account : ''
    return this.#writes.submit(account, write)
  }

  /**
   * Remembers a failure until a commit has succeeded, and tries one by itself, so that no client
   * must.
   */
  async #commit(batch: readonly Write[]): Promise<readonly Outcome[]> {
    const startMs = this.#clock.monotonicMs()
    try {
      const outcomes = await this.#channel.commit(batch)
      // A batch that changed nothing had nothing to commit, so it proves nothing.
      if (outcomes.some((changes) => changes > 0)) {
        this.#failing = undefined
        this.#committed?.(batch.length, this.#clock.monotonicMs() - startMs)
      }
      return outcomes
    } catch (failure) {
      this.#failing = (failure as Failure).cause
      this.#callOffRetry ??= this.#clock.after(retryMs, () => {
        this.#callOffRetry = undefined
        this.#write({ kind: 'tryCommit' }).catch(() => {})
      })
      throw failure
    }
  }
}

export function keptBy(plants: SqlitePlants, tokens: SqliteTokens): Copyable {
  return {
    plants: (account, range) => plants.kept(account, range),
    countPlants: (account) => plants.count(account),
    tokens: (range) => tokens.kept(range),
  }
}
