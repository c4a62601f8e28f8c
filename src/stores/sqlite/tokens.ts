// The tokens of an SQLite store.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Failure } from '../../domain/failure.ts'
import type { TokenRange, Tokens } from '../../domain/store.ts'
import { hashMax, hashMin, type KeptToken, type Token, type TokenHash } from '../../domain/token.ts'
import { tokenColumns, tokenOf, tokenValues } from '../tokenRow.ts'
import { noAccount, plannedInteger, reading, type SendWrite } from './statements.ts'

export class SqliteTokens implements Tokens {
  readonly delayMs = 0
  readonly #write: SendWrite
  readonly #token: StatementSync
  readonly #tokenById: StatementSync
  readonly #tokens: StatementSync
  readonly #keptTokens: StatementSync
  readonly #anyToken: StatementSync

  constructor(database: DatabaseSync, write: SendWrite) {
    this.#write = write
    const tokens = `select ${tokenColumns} from tokens`
    this.#token = database.prepare(`${tokens} where hash = ?`)
    this.#tokenById = database.prepare(`${tokens} where id = ?`)
    this.#keptTokens = database.prepare(
      `select hash, ${tokenColumns} from tokens where hash > ? and hash <= ? order by hash limit ${plannedInteger}`,
    )
    this.#anyToken = database.prepare('select 1 from tokens limit 1')
    this.#tokens = database.prepare(
      `${tokens} where account = ifnull(?, account) order by created_at_ms, id`,
    )
  }

  async issue(token: Token, hash: TokenHash): Promise<void> {
    const issued = await this.#write(token.account, 'issueToken', ...tokenParameters(token, hash))
    if (issued !== 1)
      throw new Failure(
        'store-unavailable',
        'A token with this id is there already; nothing was done, try again.',
      )
  }

  async issueFirst(token: Token, hash: TokenHash): Promise<boolean> {
    return (
      (await this.#write(token.account, 'issueFirstToken', ...tokenParameters(token, hash))) === 1
    )
  }

  find(hash: TokenHash): Token | undefined {
    return tokenOrNone(reading(() => this.#token.get(hash)))
  }

  list(account?: string): readonly Token[] {
    return reading(() => this.#tokens.all(account ?? null)).map(tokenOf)
  }

  /** As `tokens` of `Copyable`. */
  kept({ after = hashMin, upTo = hashMax, limit }: TokenRange): readonly KeptToken[] {
    const rows = reading(() => this.#keptTokens.all(after, upTo, limit)) as unknown as {
      readonly hash: TokenHash
    }[]
    return rows.map((row) => ({ ...tokenOf(row), hash: row.hash }))
  }

  any(): boolean {
    return reading(() => this.#anyToken.get()) !== undefined
  }

  async revoke(id: string, nowMs: number): Promise<Token | undefined> {
    await this.#write(noAccount, 'revokeToken', nowMs, id)
    return tokenOrNone(reading(() => this.#tokenById.get(id)))
  }

  async noteUse(id: string, usedAtMs: number): Promise<void> {
    await this.#write(noAccount, 'noteTokenUse', usedAtMs, id)
  }
}

/** The token that a row may be; a row that is not there is none. */
function tokenOrNone(row: unknown): Token | undefined {
  return row === undefined ? undefined : tokenOf(row)
}

/** A blob travels to the writer in hexadecimal. */
function tokenParameters(token: Token, hash: TokenHash): [string, ...(string | number | null)[]] {
  return [Buffer.from(hash).toString('hex'), ...tokenValues(token)]
}
