// The store on SQLite: reads on the caller's thread, which the page cache answers, and writes in
// batches on a thread of their own, which waits for the disk.
import type { DatabaseSync } from 'node:sqlite'
import type { Failure } from '../../domain/failure.ts'
import type { Copyable, Store } from '../../domain/store.ts'
import { nothingDone } from '../failures.ts'
import { type Commit, GroupCommit, WaitingRoom } from '../groupCommit.ts'
import { closingOnError, connect, onceUnlocked, refusal } from './connection.ts'
import {
  type FileUse,
  findLoss,
  type Place,
  placeOfFile,
  placeOfLog,
  prepareFile,
  refuseLostLog,
} from './file.ts'
import { SqlitePlants } from './plants.ts'
import { migrate } from './schema.ts'
import { noAccount, type SendWrite } from './statements.ts'
import { SqliteTokens } from './tokens.ts'
import type { Outcome, Write } from './writer/batch.ts'
import { type Channel, commitThrough, textOf } from './writer/channel.ts'
import { writerThread } from './writerThread.ts'

/** While commits fail, one is tried this often. */
const retryMs = 1000

export interface SqliteUse extends FileUse {
  /** Told of what the operator should look at. */
  readonly warn?: (message: string, cause: unknown) => void
}

/** Opens the store in a file. Rejects with Refused if it cannot serve. */
export async function openSqliteStore(path: string, use: SqliteUse): Promise<Store> {
  try {
    prepareFile(path, use)
    await refuseLostLog(path)
    const file = placeOfFile(path)
    const database = connect(path)
    return await closingOnError(database, async () => {
      await onceUnlocked(database, () => migrate(database))
      const place = [...file, ...placeOfLog(path)]
      const writer = await writerThread({ path, place }, use.warn ?? (() => {}))
      return new SqliteStore(database, writer, place)
    })
  } catch (error) {
    throw refusal(path, error)
  }
}

export class SqliteStore implements Store {
  readonly plants: SqlitePlants
  readonly tokens: SqliteTokens
  readonly kept: Copyable
  readonly #database: DatabaseSync
  readonly #channel: Channel
  readonly #place: Place
  readonly #commit: Commit<Write, Outcome>
  readonly #writes: GroupCommit<Write, Outcome>
  /** Why the last commit failed, until one has succeeded. */
  #failing: unknown
  #retry: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  constructor(database: DatabaseSync, channel: Channel, place: Place) {
    this.#database = database
    this.#place = place
    this.#channel = channel
    this.#commit = commitThrough(channel)
    this.#writes = new GroupCommit((batch) => this.#commitWatched(batch), {
      room: new WaitingRoom(),
      textOf,
    })
    const write: SendWrite = (account, ...write) => this.#write(account, ...write)
    this.plants = new SqlitePlants(database, write)
    this.tokens = new SqliteTokens(database, write)
    this.kept = {
      plants: (account, range) => this.plants.kept(account, range),
      countPlants: () => this.plants.count(),
      tokens: (range) => this.tokens.kept(range),
    }
  }

  async ready(): Promise<void> {
    // Asking would say nothing new, and would wait behind what fails.
    if (this.#failing !== undefined) throw nothingDone(this.#failing)
    this.plants.nthId(noAccount, undefined, 1)
    await this.#write(noAccount, 'probe')
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.#writes.finish()
    clearTimeout(this.#retry)
    await this.#channel.close()
    // As in writer.ts: the log by that name may be another file's.
    if (findLoss(this.#place) === undefined) this.#database.close()
  }

  #write(account: string, ...write: Write): Promise<Outcome> {
    return this.#writes.submit(account, write)
  }

  /**
   * Remembers a failure until a commit has succeeded, and tries one by itself, so that no client
   * must.
   */
  async #commitWatched(batch: readonly Write[]): Promise<readonly Outcome[]> {
    try {
      const outcomes = await this.#commit(batch)
      // What changed nothing had nothing to commit.
      if (outcomes.some((changes) => changes > 0)) this.#failing = undefined
      return outcomes
    } catch (failure) {
      this.#failing = (failure as Failure).cause
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined
        this.#write(noAccount, 'tryCommit').catch(() => {})
      }, retryMs).unref()
      throw failure
    }
  }
}
