// A token's record as a row, which both stores keep alike.
import type { Scope, Token } from '../domain/token.ts'

/** The columns of a token's record beside its hash, in the order of `tokenValues`. */
export const tokenColumns =
  'id, account, label, scopes, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms'

export function tokenValues(
  token: Token,
): [string, string, string, string, number, ...(number | null)[]] {
  const { id, account, label, scopes, createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs } = token
  return [id, account, label, scopes.join(','), createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs]
}

/** Times come as the driver has 64-bit integers. */
interface TokenRow {
  readonly id: string
  readonly account: string
  readonly label: string
  readonly scopes: string
  readonly created_at_ms: number | bigint
  readonly expires_at_ms: number | bigint | null
  readonly revoked_at_ms: number | bigint | null
  readonly last_used_at_ms: number | bigint | null
}

/** The token in a row with all of `tokenColumns`. */
export function tokenOf(of: unknown): Token {
  const row = of as TokenRow
  return {
    id: row.id,
    account: row.account,
    label: row.label,
    scopes: row.scopes.split(',') as Scope[],
    createdAtMs: Number(row.created_at_ms),
    expiresAtMs: timeOf(row.expires_at_ms),
    revokedAtMs: timeOf(row.revoked_at_ms),
    lastUsedAtMs: timeOf(row.last_used_at_ms),
  }
}

function timeOf(timeMs: number | bigint | null): number | null {
  return timeMs === null ? null : Number(timeMs)
}
