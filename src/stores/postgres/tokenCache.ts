// The tokens that were looked up a moment ago. Other processes revoke tokens too, so what is known
// of one counts for a short time only, which the README states.
import type { Clock } from '../../clock.ts'
import type { Token, TokenHash } from '../../domain/token.ts'

/** How long a look-up counts, from the moment at which it was asked. */
export const tokenLifetimeMs = 3000
/** Most tokens that are remembered. */
const tokensMax = 10_000

export class TokenCache {
  readonly #lookUp: (hash: TokenHash) => Promise<Token | undefined>
  readonly #clock: Clock
  readonly #known = new Map<string, { token: Token; readonly untilMs: number }>()
  /** By the id of a token, its key among the known. */
  readonly #keys = new Map<string, string>()
  readonly #underWay = new Map<string, Promise<Token | undefined>>()

  constructor(lookUp: (hash: TokenHash) => Promise<Token | undefined>, clock: Clock) {
    this.#lookUp = lookUp
    this.#clock = clock
  }

  /** Only tokens that exist are remembered, so a new one works at once. */
  find(hash: TokenHash): Token | undefined | Promise<Token | undefined> {
    const key = Buffer.from(hash).toString('latin1')
    const known = this.#known.get(key)
    if (known !== undefined && this.#clock.monotonicMs() < known.untilMs) return known.token
    const underWay = this.#underWay.get(key)
    // A look-up that began before the token was issued found none: then it is looked up again.
    if (underWay !== undefined) return underWay.then((token) => token ?? this.#lookUp(hash))
    const asked = this.#ask(key, hash)
    this.#underWay.set(key, asked)
    return asked
  }

  /** Keeps what this process itself has changed of a token. */
  update(id: string, change: (token: Token) => Token): void {
    const known = this.#known.get(this.#keys.get(id) ?? '')
    if (known !== undefined) known.token = change(known.token)
  }

  async #ask(key: string, hash: TokenHash): Promise<Token | undefined> {
    const untilMs = this.#clock.monotonicMs() + tokenLifetimeMs
    try {
      const token = await this.#lookUp(hash)
      this.#forget(key)
      if (token === undefined) return undefined
      const [oldest] = this.#known.keys()
      if (this.#known.size === tokensMax && oldest !== undefined) this.#forget(oldest)
      this.#known.set(key, { token, untilMs })
      this.#keys.set(token.id, key)
      return token
    } finally {
      this.#underWay.delete(key)
    }
  }

  #forget(key: string): void {
    const known = this.#known.get(key)
    if (known !== undefined) this.#keys.delete(known.token.id)
    this.#known.delete(key)
  }
}
