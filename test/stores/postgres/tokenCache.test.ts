// What is remembered of tokens, and for how long: a revoked one may live on for the stated time
// only.
import { describe, expect, test } from 'bun:test'
import type { Token, TokenHash } from '../../../src/domain/token.ts'
import { TokenCache, tokenLifetimeMs } from '../../../src/stores/postgres/tokenCache.ts'
import { ManualClock } from '../../support/clock.ts'

const hash = new Uint8Array(32).fill(7) as TokenHash
const token: Token = {
  id: 'id',
  account: 'a',
  label: '',
  scopes: ['plants:read'],
  createdAtMs: 1,
  expiresAtMs: null,
  revokedAtMs: null,
  lastUsedAtMs: null,
}

describe('the cache of tokens', () => {
  test('asks once for as long as it states, counted from the question', async () => {
    const clock = new ManualClock()
    let asked = 0
    const cache = new TokenCache(async () => {
      asked += 1
      await clock.sleep(200)
      return token
    }, clock)
    const found = Promise.all([cache.find(hash), cache.find(hash)])
    await clock.advance(200)
    expect(await found).toEqual([token, token])
    await clock.advance(tokenLifetimeMs - 201)
    expect(cache.find(hash)).toBe(token)
    expect(asked).toBe(1)
    await clock.advance(1)
    const again = cache.find(hash)
    expect(asked).toBe(2)
    await clock.advance(200)
    expect(await again).toBe(token)
  })

  test('remembers no token that is not there', async () => {
    let found: Token | undefined
    const cache = new TokenCache(async () => found, new ManualClock())
    expect(await cache.find(hash)).toBeUndefined()
    found = token
    expect(await cache.find(hash)).toBe(token)
  })

  test('asks again if a look-up that it joined began before the token was issued', async () => {
    const clock = new ManualClock()
    let found: Token | undefined
    const cache = new TokenCache(async () => {
      const seen = found
      await clock.sleep(50)
      return seen
    }, clock)
    const first = cache.find(hash)
    found = token
    const second = cache.find(hash)
    await clock.advance(100)
    expect(await first).toBeUndefined()
    expect(await second).toBe(token)
  })

  test('keeps what this process changes, and a failed look-up not at all', async () => {
    let fails = true
    const cache = new TokenCache(async () => {
      if (fails) throw new Error('down')
      return token
    }, new ManualClock())
    await expect((async () => await cache.find(hash))()).rejects.toThrow('down')
    fails = false
    await cache.find(hash)
    cache.update('id', (known) => ({ ...known, lastUsedAtMs: 5 }))
    expect(cache.find(hash)).toEqual({ ...token, lastUsedAtMs: 5 })
  })
})
