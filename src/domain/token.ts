// A token's form, its secret and its public record. Only the owner has the plain text; the service
// keeps a hash.
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

export const scopes = ['plants:read', 'plants:write'] as const
export type Scope = (typeof scopes)[number]

/** Longest account name and longest label, in characters. */
export const nameLengthMax = 255

/** The record of a token, without its secret. Times are Unix milliseconds. */
export interface Token {
  /** Public name of the token, for listing and revoking it. */
  readonly id: string
  readonly account: string
  readonly label: string
  readonly scopes: readonly Scope[]
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  readonly revokedAtMs: number | null
  /** When it was last used, to the hour. Constant use may show with a delay of up to an hour. */
  readonly lastUsedAtMs: number | null
}

declare const hashed: unique symbol
/** SHA-256 of a token's plain text: 32 bytes, the only trace of it that is stored. */
export type TokenHash = Uint8Array & { readonly [hashed]: true }

/** The least and the greatest hash. */
export const hashMin = new Uint8Array(32) as TokenHash
export const hashMax = new Uint8Array(32).fill(0xff) as TokenHash

/** A token's record as it is kept: under the hash of its plain text. */
export interface KeptToken extends Token {
  readonly hash: TokenHash
}

/** The plain text of a token. Only `reveal` shows it. */
export class PlainToken {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  reveal(): string {
    return this.#text
  }

  hash(): TokenHash {
    return hash('sha256', this.#text, 'buffer') as unknown as TokenHash
  }

  toString(): string {
    return 'plants_[redacted]'
  }

  toJSON(): string {
    return this.toString()
  }
}

/** How many random bytes a token holds. */
export const tokenRandomBytes = 32
/** Digits that hold so many bytes: 62 ** 43 is the first power of 62 above 2 ** 256. */
const secretLength = 43
/** Digits that hold a CRC-32: 62 ** 6 is the first power of 62 above 2 ** 32. */
const checkLength = 6
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Makes a token from 32 random bytes: `plants_`, the bytes in base62, and a CRC-32 of all that. */
export function plainTokenFrom(random: Uint8Array): PlainToken {
  if (random.length !== tokenRandomBytes)
    throw new RangeError(`a token takes ${tokenRandomBytes} random bytes`)
  const secret = BigInt(`0x${Buffer.from(random).toString('hex')}`)
  const body = `plants_${base62(secret, secretLength)}`
  return new PlainToken(body + base62(BigInt(crc32(body)), checkLength))
}

/**
 * The hash under which a token is stored, or undefined if the text cannot be a token: its form or
 * its check is wrong. So a typing mistake is refused without a look-up.
 */
export function tokenHashOf(text: string): TokenHash | undefined {
  if (!/^plants_[0-9A-Za-z]{49}$/.test(text)) return undefined
  let check = 0
  for (const digit of text.slice(-checkLength)) check = check * 62 + digits.indexOf(digit)
  return check === crc32(text.slice(0, -checkLength)) ? new PlainToken(text).hash() : undefined
}

/** Text to show or log. It hides a token that somebody put in the wrong place. */
export function withoutTokens(text: string): string {
  return text.replace(/plants_[0-9A-Za-z]{20,}/g, 'plants_[redacted]')
}

/** Whether a token is accepted at this time, and if not, why. */
export function tokenState(token: Token, nowMs: number): 'active' | 'expired' | 'revoked' {
  if (token.revokedAtMs !== null) return 'revoked'
  return token.expiresAtMs !== null && token.expiresAtMs <= nowMs ? 'expired' : 'active'
}

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = digits.charAt(Number(rest % 62n)) + text
  return text.padStart(length, '0')
}
