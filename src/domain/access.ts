// Issues tokens, finds the caller behind a token, and checks the caller's scopes.
import { Failure } from './failure.ts'
import type { Tokens } from './store.ts'
import {
  type PlainToken,
  plainTokenFrom,
  type Scope,
  type Token,
  tokenHashOf,
  tokenRandomBytes,
  tokenState,
} from './token.ts'

const hourMs = 3_600_000

/** Who is asking: an account, reached through one of its tokens. */
export interface Caller {
  readonly account: string
  /** The public id of that token. */
  readonly tokenId: string
  readonly scopes: readonly Scope[]
}

/**
 * The caller behind a token's plain text. An unknown, a malformed, an expired and a revoked token
 * get the same refusal. The store is asked every time, and its `delayMs` says how soon it knows of
 * a revoked token.
 */
export async function authenticate(
  tokens: Tokens,
  plainToken: string,
  nowMs: number,
): Promise<Caller> {
  const hash = tokenHashOf(plainToken)
  const token = hash === undefined ? undefined : await tokens.find(hash)
  if (token === undefined || tokenState(token, nowMs) !== 'active')
    throw new Failure('token-refused')
  // The hour of its use is written once an hour. No request waits for that or fails with it. If a
  // token is in constant use, its id decides at which moment: otherwise all tokens would be written
  // as the hour begins.
  const afterFullHourMs = Number.parseInt(token.id.slice(0, 8), 16) % hourMs
  if (token.lastUsedAtMs === null || token.lastUsedAtMs < fullHour(nowMs - afterFullHourMs))
    tokens.noteUse(token.id, fullHour(nowMs)).catch(() => {})
  return { account: token.account, tokenId: token.id, scopes: token.scopes }
}

function fullHour(timeMs: number): number {
  return timeMs - (timeMs % hourMs)
}

export function requireScope(caller: Caller, scope: Scope): void {
  if (caller.scopes.includes(scope)) return
  throw new Failure('scope-missing', scope)
}

export interface TokenRequest {
  readonly account: string
  readonly label: string
  readonly scopes: readonly Scope[]
  /** How long the token lasts, or null if it lasts until it is revoked. */
  readonly lifetimeMs: number | null
}

interface IssuedToken {
  readonly plain: PlainToken
  readonly token: Token
}

export async function issueToken(
  tokens: Tokens,
  request: TokenRequest,
  nowMs: number,
  randomBytes: (count: number) => Uint8Array,
): Promise<IssuedToken> {
  const issued = newToken(request, nowMs, randomBytes)
  await tokens.issue(issued.token, issued.plain.hash())
  return issued
}

/** Issues a token if the store holds none at all; otherwise does nothing and returns undefined. */
export async function issueFirstToken(
  tokens: Tokens,
  request: TokenRequest,
  nowMs: number,
  randomBytes: (count: number) => Uint8Array,
): Promise<IssuedToken | undefined> {
  const issued = newToken(request, nowMs, randomBytes)
  return (await tokens.issueFirst(issued.token, issued.plain.hash())) ? issued : undefined
}

function newToken(
  request: TokenRequest,
  createdAtMs: number,
  randomBytes: (count: number) => Uint8Array,
): IssuedToken {
  const token: Token = {
    id: Buffer.from(randomBytes(6)).toString('hex'),
    account: request.account,
    label: request.label,
    scopes: request.scopes,
    createdAtMs,
    expiresAtMs: request.lifetimeMs === null ? null : createdAtMs + request.lifetimeMs,
    revokedAtMs: null,
    lastUsedAtMs: null,
  }
  return { plain: plainTokenFrom(randomBytes(tokenRandomBytes)), token }
}
