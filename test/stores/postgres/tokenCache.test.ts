// What is remembered of tokens, and for how long: a revoked one may live on for the stated time
// only.
import { describe, expect, test } from 'bun:test'
import type { Token, TokenHash } from '../../../src/domain/token.ts'
import { TokenCache, tokenLifetimeMs } from '../../../src/stores/postgres/tokenCache.ts'

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
    let asked = 0
    const cache = new TokenCache(async () => {
      asked += 1
      await Bun.sleep(200)
      return token
    })
    expect(await Promise.all([cache.find(hash), cache.find(hash)])).toEqual([token, token])
    await Bun.sleep(tokenLifetimeMs - 400)
    expect(cache.find(hash)).toBe(token)
    expect(asked).toBe(1)
    await Bun.sleep(300)
    await cache.find(hash)
    expect(asked).toBe(2)
  })

  test('remembers no token that is not there', async () => {
    let found: Token | undefined
    const cache = new TokenCache(async () => found)
    expect(await cache.find(hash)).toBeUndefined()
    found = token
    expect(await cache.find(hash)).toBe(token)
  })

  test('asks again for who joined a look-up that began before the token was issued', async () => {
    let found: Token | undefined
    const cache = new TokenCache(async () => {
      const seen = found
      await Bun.sleep(50)
      return seen
    })
    const first = cache.find(hash)
    found = token
    expect(await cache.find(hash)).toBe(token)
    expect(await first).toBeUndefined()
  })

  test('keeps what this process changes, and a failed look-up not at all', async () => {
    let fails = true
    const cache = new TokenCache(async () => {
      if (fails) throw new Error('down')
      return token
    })
    await expect((async () => await cache.find(hash))()).rejects.toThrow('down')
    fails = false
    await cache.find(hash)
    cache.update('id', (known) => ({ ...known, lastUsedAtMs: 5 }))
    expect(cache.find(hash)).toEqual({ ...token, lastUsedAtMs: 5 })
  })
})
