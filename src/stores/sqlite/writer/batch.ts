// Applies a batch of writes in one transaction, and so with one sync of the disk. It runs in the
// writer's thread (thread.ts) and knows nothing of it.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { KeptPlant } from '../../../domain/plant.ts'
import { tokenValues } from '../../tokens.ts'
import { statements } from '../statements.ts'
import type { BatchOutcome, Outcome, Write } from './crossing.ts'

/**
 * Name and tag together above this are kept apart from their plant. SQLite keeps up to 1,002 bytes
 * of a record on an index page of 4,096; the rest is for an account and an idempotency key of 255
 * bytes each.
 */
export const shortTextBytesMax = 450

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
  readonly #writes: Readonly<Record<Write['kind'], StatementSync>>

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#begin = database.prepare(statements.begin)
    this.#commit = database.prepare(statements.commit)
    this.#keepLongText = database.prepare(statements.keepLongText)
    this.#writes = {
      createPlant: database.prepare(statements.createPlant),
      deletePlant: database.prepare(statements.deletePlant),
      issueToken: database.prepare(statements.issueToken),
      issueFirstToken: database.prepare(statements.issueFirstToken),
      revokeToken: database.prepare(statements.revokeToken),
      noteTokenUse: database.prepare(statements.noteTokenUse),
      probe: database.prepare(statements.probe),
      tryCommit: database.prepare(statements.tryCommit),
    }
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
    const statement = this.#writes[write.kind]
    switch (write.kind) {
      case 'createPlant':
        return this.#createPlant(write.account, write.plant)
      case 'deletePlant':
        return Number(statement.run(write.account, write.id).changes)
      case 'issueToken':
      case 'issueFirstToken':
        return Number(statement.run(write.hash, ...tokenValues(write.token)).changes)
      case 'revokeToken':
        return Number(statement.run(write.nowMs, write.id).changes)
      case 'noteTokenUse':
        return Number(statement.run(write.usedAtMs, write.id).changes)
      case 'probe':
        return Number(statement.run().changes)
      case 'tryCommit':
        statement.run()
        return 1
    }
  }

  #createPlant(account: string, { id, name, tag, idempotencyKey }: KeptPlant): Outcome {
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
