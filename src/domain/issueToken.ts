// Issuing a token: the one moment at which its plain text exists.
import type { Tokens } from './store.ts'
import {
  type PlainToken,
  plainTokenFrom,
  type Scope,
  type Token,
  tokenRandomBytes,
} from './token.ts'

export interface TokenRequest {
  readonly account: string
  readonly label: string
  readonly scopes: readonly Scope[]
  /** How long the token lasts, or null for as long as it is not revoked. */
  readonly lifetimeMs: number | null
}

export interface IssuedToken {
  readonly plain: PlainToken
  readonly token: Token
}

const tokenIdBytes = 6

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

/**
 * Issues a token if the store holds none at all; otherwise does nothing and answers undefined.
 */
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
    id: Buffer.from(randomBytes(tokenIdBytes)).toString('hex'),
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
