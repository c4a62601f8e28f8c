// The tokens of a PostgreSQL store. Those in use are remembered for some seconds (tokenCache.ts).
import type { Clock } from '../../clock.ts'
import type { Awaitable, TokenRange, Tokens } from '../../domain/store.ts'
import { hashMax, hashMin, type KeptToken, type Token, type TokenHash } from '../../domain/token.ts'
import { tokenOf, tokenValues } from '../tokens.ts'
import type { Attempts } from './attempts.ts'
import { statements } from './statements.ts'
import { TokenCache, tokenLifetimeMs } from './tokenCache.ts'

export class PostgresTokens implements Tokens {
  readonly delayMs = tokenLifetimeMs
  readonly #attempts: Attempts
  readonly #cache: TokenCache

  constructor(attempts: Attempts, clock: Clock) {
    this.#attempts = attempts
    this.#cache = new TokenCache((hash) => this.#lookUp(hash), clock)
  }

  async issue(token: Token, hash: TokenHash): Promise<void> {
    await this.#attempts.write(statements.issueToken, [hash, ...tokenValues(token)])
  }

  async issueFirst(token: Token, hash: TokenHash): Promise<boolean> {
    const values = [hash, ...tokenValues(token)]
    if ((await this.#attempts.write(statements.issueFirstToken, values)).length === 1) return true
    // An attempt whose answer was lost may have been the first.
    if ((await this.#lookUp(hash)) === undefined) return false
    await this.issue(token, hash)
    return true
  }

  find(hash: TokenHash): Awaitable<Token | undefined> {
    return this.#cache.find(hash)
  }

  async list(account?: string): Promise<readonly Token[]> {
    const rows = await this.#attempts.read(statements.listTokens, [account ?? null])
    return rows
      .map(tokenOf)
      .sort((one, other) => one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1))
  }

  async any(): Promise<boolean> {
    return (await this.#attempts.read(statements.anyToken, [])).length > 0
  }

  async revoke(id: string, nowMs: number): Promise<Token | undefined> {
    const rows = await this.#attempts.write(statements.revokeToken, [id, nowMs])
    const [revoked] = rows.map(tokenOf)
    if (revoked !== undefined) this.#cache.update(id, () => revoked)
    return revoked
  }

  async noteUse(id: string, usedAtMs: number): Promise<void> {
    // Remembered at once, so that the requests that follow do not write it again.
    this.#cache.update(id, (token) => ({ ...token, lastUsedAtMs: usedAtMs }))
    await this.#attempts.write(statements.noteTokenUse, [id, usedAtMs])
  }

  /** As `tokens` of `Copyable`. */
  async kept({
    after = hashMin,
    upTo = hashMax,
    limit,
  }: TokenRange): Promise<readonly KeptToken[]> {
    const rows = await this.#attempts.read(statements.keptTokens, [after, upTo, limit])
    return rows.map((row) => ({ ...tokenOf(row), hash: row['hash'] as TokenHash }))
  }

  async #lookUp(hash: TokenHash): Promise<Token | undefined> {
    const [row] = await this.#attempts.read(statements.findToken, [hash])
    return row === undefined ? undefined : tokenOf(row)
  }
}
