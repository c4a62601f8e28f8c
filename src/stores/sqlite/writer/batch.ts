// Applies a batch of writes in one transaction, and so with one sync of the disk. It runs in the
// writer's thread (writer.ts) and knows nothing of it.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { applicationId } from '../schema.ts'

type Parameters = readonly (string | number | null)[]

/** A write and its SQL parameters. 64-bit integers travel in decimal, blobs in hexadecimal. */
export type Write =
  | CreatePlant
  | readonly [name: Exclude<WriteName, 'createPlant'>, ...parameters: Parameters]

type CreatePlant = readonly [
  name: 'createPlant',
  account: string,
  id: string,
  plantName: string,
  tag: string | null,
  idempotencyKey: string | null,
]

/** What became of a write: how many rows it changed. */
export type Outcome = number

/**
 * What became of a batch: the outcome of each write, or why none counts. `undone`: surely nothing
 * was written.
 */
export type BatchOutcome =
  | { readonly outcomes: readonly Outcome[] }
  | { readonly failed: string; readonly undone: boolean }

/**
 * Name and tag together above this are kept apart from their plant. SQLite keeps up to 1,002 bytes
 * of a record on an index page of 4,096; the rest is for an account and an idempotency key of 255
 * bytes each.
 */
export const shortTextBytesMax = 450

/** Keeps the text of a plant that is about to be created, unless its id is taken. */
const keepLongText = `insert into long_texts (name, tag)
  select ?, ? where not exists (select 1 from plants where account = ? and id = cast(? as integer))`

const statements = {
  createPlant:
    'insert into plants values (?, cast(? as integer), ?, ?, ?, ?) on conflict do nothing',
  deletePlant: 'delete from plants where account = ? and id = cast(? as integer)',
  issueToken: 'insert into tokens values (unhex(?), ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing',
  issueFirstToken:
    'insert into tokens select unhex(?), ?, ?, ?, ?, ?, ?, ?, ? where not exists (select 1 from tokens)',
  revokeToken: 'update tokens set revoked_at_ms = coalesce(revoked_at_ms, ?) where id = ?',
  noteTokenUse: 'update tokens set last_used_at_ms = ? where id = ?',
  /** Changes nothing, but takes the write lock: shows that the file can be written to. */
  probe: 'delete from plants where false',
  /**
   * Writes what is there already, so that a commit has something to sync: shows that one succeeds.
   */
  tryCommit: `pragma application_id = ${applicationId}`,
} as const

export type WriteName = keyof typeof statements

/**
 * https://sqlite.org/rescode.html: the commit found the disk full or the file locked, before it
 * took effect.
 */
const undoneCodes = new Set([5, 13])

export class BatchWriter {
  readonly #database: DatabaseSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #keepLongText: StatementSync
  readonly #writes: Readonly<Record<WriteName, StatementSync>>

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
    this.#keepLongText = database.prepare(keepLongText)
    const prepared = Object.entries(statements).map(
      ([name, sql]) => [name, database.prepare(sql)] as const,
    )
    this.#writes = Object.fromEntries(prepared) as Record<WriteName, StatementSync>
  }

  apply(batch: readonly Write[]): BatchOutcome {
    let outcomes: Outcome[]
    try {
      this.#begin.run()
      outcomes = batch.map((write) => this.#apply(write))
    } catch (error) {
      return this.#failed(error, true)
    }
    try {
      this.#commit.run()
    } catch (error) {
      return this.#failed(error, undoneCodes.has((error as { errcode?: number }).errcode ?? 0))
    }
    return { outcomes }
  }

  #apply(write: Write): Outcome {
    if (write[0] === 'createPlant') return this.#createPlant(write)
    const [name, ...parameters] = write
    const { changes } = this.#writes[name].run(...parameters)
    return name === 'tryCommit' ? 1 : Number(changes)
  }

  #createPlant([, account, id, name, tag, idempotencyKey]: CreatePlant): Outcome {
    const create = this.#writes.createPlant
    const textBytes = Buffer.byteLength(name) + Buffer.byteLength(tag ?? '')
    if (textBytes <= shortTextBytesMax)
      return Number(create.run(account, id, name, tag, idempotencyKey, null).changes)
    const { changes, lastInsertRowid } = this.#keepLongText.run(name, tag, account, id)
    return changes === 0
      ? 0
      : Number(create.run(account, id, '', null, idempotencyKey, lastInsertRowid).changes)
  }

  #failed(error: unknown, undone: boolean): BatchOutcome {
    if (this.#database.isTransaction) this.#database.exec('rollback')
    return { failed: error instanceof Error ? error.message : String(error), undone }
  }
}
