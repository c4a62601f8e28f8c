// The tokens of an SQLite store. Reads run on this thread, writes go through the channel to the
// writer.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Failure } from '../../domain/failure.ts'
import type { TokenRange, Tokens } from '../../domain/store.ts'
import { hashMax, hashMin, type KeptToken, type Token, type TokenHash } from '../../domain/token.ts'
import { tokenOf } from '../tokens.ts'
import { reading } from './connection.ts'
import { statements } from './statements.ts'
import type { SendWrite } from './writer/crossing.ts'

export class SqliteTokens implements Tokens {
  /** Every find asks the file. */
  readonly delayMs = 0
  readonly #write: SendWrite
  readonly #find: StatementSync
  readonly #findById: StatementSync
  readonly #list: StatementSync
  readonly #anyToken: StatementSync
  readonly #kept: StatementSync

  constructor(database: DatabaseSync, write: SendWrite) {
    this.#write = write
    this.#find = database.prepare(statements.findToken)
    this.#findById = database.prepare(statements.findTokenById)
    this.#list = database.prepare(statements.listTokens)
    this.#anyToken = database.prepare(statements.anyToken)
    this.#kept = database.prepare(statements.keptTokens)
  }

  async issue(token: Token, hash: TokenHash): Promise<void> {
    const issued = await this.#write({ kind: 'issueToken', token, hash })
    if (issued !== 1)
      throw new Failure(
        'store-unavailable',
        'A token with this id is there already; nothing was done, try again.',
      )
  }

  async issueFirst(token: Token, hash: TokenHash): Promise<boolean> {
    return (await this.#write({ kind: 'issueFirstToken', token, hash })) === 1
  }

  find(hash: TokenHash): Token | undefined {
    const row = reading(() => this.#find.get(hash))
    return row === undefined ? undefined : tokenOf(row)
  }

  list(account?: string): readonly Token[] {
    return reading(() => this.#list.all(account ?? null)).map(tokenOf)
  }

  any(): boolean {
    return reading(() => this.#anyToken.get()) !== undefined
  }

  async revoke(id: string, nowMs: number): Promise<Token | undefined> {
    await this.#write({ kind: 'revokeToken', id, nowMs })
    const row = reading(() => this.#findById.get(id))
    return row === undefined ? undefined : tokenOf(row)
  }

  async noteUse(id: string, usedAtMs: number): Promise<void> {
    await this.#write({ kind: 'noteTokenUse', id, usedAtMs })
  }

  /** As `tokens` of `Copyable`. */
  kept({ after = hashMin, upTo = hashMax, limit }: TokenRange): readonly KeptToken[] {
    const rows = reading(() => this.#kept.all(after, upTo, limit)) as unknown as {
      readonly hash: TokenHash
    }[]
    return rows.map((row) => ({ ...tokenOf(row), hash: row.hash }))
  }
}
