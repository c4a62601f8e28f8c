// From a bearer token to the caller it stands for.
import { Failure } from './failure.ts'
import type { Tokens } from './store.ts'
import { isUsable, type Scope, type Token, tokenHashOf } from './token.ts'

/** Who is asking: an account, reached through one of its tokens. */
export interface Caller {
  readonly account: string
  readonly scopes: readonly Scope[]
}

const hourMs = 3_600_000

/**
 * The caller behind a token's plain text. Unknown, malformed, expired or revoked: the same
 * refusal for all of them. The store is asked every time; how soon it knows of a revoked token is
 * its promise (`delayMs`).
 */
export async function authenticate(
  tokens: Tokens,
  plainToken: string,
  nowMs: number,
): Promise<Caller> {
  const hash = tokenHashOf(plainToken)
  const token = hash === undefined ? undefined : await tokens.find(hash)
  if (token === undefined || !isUsable(token, nowMs)) {
    throw new Failure('token-refused')
  }
  noteUse(tokens, token, nowMs)
  return { account: token.account, scopes: token.scopes }
}

export function requireScope(caller: Caller, scope: Scope): void {
  if (caller.scopes.includes(scope)) return
  throw new Failure('scope-missing', scope)
}

/** Writes the hour of a token's use, once an hour; no request waits for it or fails with it. */
function noteUse(tokens: Tokens, token: Token, nowMs: number): void {
  const usedAtMs = nowMs - (nowMs % hourMs)
  if (token.lastUsedAtMs !== null && token.lastUsedAtMs >= usedAtMs) return
  tokens.noteUse(token.id, usedAtMs).catch(() => {})
}
