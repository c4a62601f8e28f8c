// The form of a token, its hash and its check.
import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { plainTokenFrom, tokenHashOf } from '../../src/domain/token.ts'

const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 })

describe('a token', () => {
  test('is plants_ and 49 letters and digits, for any bytes', () => {
    fc.assert(
      fc.property(bytes32, (bytes) =>
        /^plants_[0-9A-Za-z]{49}$/.test(plainTokenFrom(bytes).reveal()),
      ),
    )
    expect(plainTokenFrom(new Uint8Array(32)).reveal()).toMatch(/^plants_0{43}[0-9A-Za-z]{6}$/)
    expect(plainTokenFrom(new Uint8Array(32).fill(255)).reveal()).toHaveLength(56)
  })

  test('is known again by the same hash', () => {
    fc.assert(
      fc.property(bytes32, (bytes) => {
        const token = plainTokenFrom(bytes)
        expect(tokenHashOf(token.reveal())).toEqual(token.hash())
      }),
    )
  })

  test('is refused after any typing mistake in one place', () => {
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
    const token = plainTokenFrom(randomBytes(32)).reveal()
    for (let at = 7; at < token.length; at += 1) {
      for (const digit of digits) {
        if (digit !== token[at])
          expect(tokenHashOf(token.slice(0, at) + digit + token.slice(at + 1))).toBeUndefined()
      }
    }
  })

  test('is refused with neighbours exchanged', () => {
    const token = plainTokenFrom(randomBytes(32)).reveal()
    for (let at = 7; at < token.length - 1; at += 1) {
      const swapped = token.slice(0, at) + token[at + 1] + token[at] + token.slice(at + 2)
      if (swapped !== token) expect(tokenHashOf(swapped)).toBeUndefined()
    }
  })

  test('stays hidden when it is printed', () => {
    const token = plainTokenFrom(randomBytes(32))
    for (const shown of [String(token), JSON.stringify({ token }), Bun.inspect(token), `${token}`])
      expect(shown).not.toContain(token.reveal())
  })
})
