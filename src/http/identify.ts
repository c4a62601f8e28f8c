// Second step: who is asking. It looks at nothing but the Authorization header.
import { authenticate, type Caller } from '../domain/authenticate.ts'
import { Failure } from '../domain/failure.ts'
import type { Store } from '../domain/store.ts'

export async function identify(
  authorization: string | null,
  store: Store,
  nowMs: number,
): Promise<Caller> {
  return authenticate(store, bearerToken(authorization), nowMs)
}

/**
 * The token in `Authorization: Bearer TOKEN` (RFC 6750, section 2.1); the scheme's name in any
 * case. `Bearer` alone is no token.
 */
function bearerToken(authorization: string | null): string {
  const token = authorization === null ? undefined : /^bearer +(\S.*)$/i.exec(authorization)?.[1]
  if (token === undefined) {
    throw new Failure(
      'token-missing',
      'A bearer token is needed: send Authorization: Bearer TOKEN.',
    )
  }
  return token
}
