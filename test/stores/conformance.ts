// What src/domain/store.ts promises, held on any store: a fresh one for each case.
import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { issueFirstToken, issueToken, type TokenRequest } from '../../src/domain/access.ts'
import type { KeptPlant } from '../../src/domain/plant.ts'
import { pagePlants } from '../../src/domain/plants.ts'
import { pageTextMax, type Store } from '../../src/domain/store.ts'
import { type KeptToken, plainTokenFrom, scopes } from '../../src/domain/token.ts'

/** A store for one case, and a second door to the same data, as another process would open it. */
export interface StoreCase {
  readonly store: Store
  readonly reopen: () => Promise<Store>
  /** Lets so much time pass for the store, at once. */
  readonly passTime: (ms: number) => void
  readonly dispose: () => Promise<void>
}

const idMin = -(2n ** 63n)
const idMax = 2n ** 63n - 1n
const nowMs = 1_700_000_000_000
const request: TokenRequest = { account: 'a', label: 'label', scopes, lifetimeMs: 1000 }

function plant(id: number | bigint, parts: Partial<KeptPlant> = {}): KeptPlant {
  return { id: BigInt(id), name: `plant ${id}`, tag: null, idempotencyKey: null, ...parts }
}

/** 255 characters of four bytes each. */
const longestAccount = '\ud83c\udf35'.repeat(255)

/** Short and long by turns: a store may keep long texts elsewhere, whatever it takes for long. */
function plantsOfEveryLength(): KeptPlant[] {
  const lengths = [0, 200, 400, 449, 450, 451, 500, 700, 900, 1000, 1100, 2000, 4000, 70_000]
  const long = lengths.flatMap((length) => [
    { name: 'n'.repeat(length), tag: null },
    { name: 'n'.repeat(length), tag: '' },
    { name: '', tag: 't'.repeat(length) },
    {
      name: '\ud83c\udf35'.repeat(length / 4),
      tag: 'ä'.repeat(length / 4),
      idempotencyKey: 'k'.repeat(255),
    },
  ])
  return long.flatMap((parts, n) => [plant(2 * n), plant(2 * n + 1, parts)])
}

async function keptOf(store: Store, account: string): Promise<KeptPlant[]> {
  return (await store.kept.plants(account, { limit: pagePlants })).plants.map((each) => ({
    ...each,
  }))
}

export function describeStore(name: string, open: () => Promise<StoreCase>): void {
  const on = (
    promise: string,
    hold: (store: Store, opened: StoreCase) => Promise<void>,
    timeoutMs = 30_000,
  ): void =>
    test(
      promise,
      async () => {
        const opened = await open()
        try {
          await hold(opened.store, opened)
        } finally {
          await opened.dispose()
        }
      },
      timeoutMs,
    )

  const ids = async (store: Store, account = 'a'): Promise<bigint[]> =>
    (await store.plants.list(account, { limit: pagePlants })).plants.map(({ id }) => id)

  describe(`${name}: creating`, () => {
    on('keeps a plant exactly', async (store) => {
      const kept = [
        plant(idMin, { name: '', tag: '' }),
        plant(-1, { name: '\u0001\ud83c\udf35 A\u030a \u00c5', tag: "'; drop table plants; --" }),
        plant(0, { tag: null, idempotencyKey: 'key' }),
        plant(idMax, { name: 'n'.repeat(1_000_000) }),
      ]
      for (const each of kept) expect(await store.plants.create('a', each)).toBeUndefined()
      const { plants } = await store.plants.list('a', { limit: 10 })
      expect(plants.map(({ id, name, tag }) => ({ id, name, tag }))).toEqual(
        kept.map(({ id, name, tag }) => ({ id, name, tag })),
      )
    })

    on('keeps texts of every length exactly, side by side in one list', async (store) => {
      const kept = plantsOfEveryLength()
      // A short one and a long one that is taken, in one batch with those that are not.
      await Promise.all(kept.slice(0, 8).map((each) => store.plants.create(longestAccount, each)))
      const answers = await Promise.all(
        kept.map((each) => store.plants.create(longestAccount, { ...each, name: `${each.name}!` })),
      )
      expect(answers.slice(0, 8)).toEqual(kept.slice(0, 8))
      expect(answers.slice(8)).toEqual(kept.slice(8).map(() => undefined))
      const expected = kept.map((each, n) => (n < 8 ? each : { ...each, name: `${each.name}!` }))
      expect(await keptOf(store, longestAccount)).toEqual(expected)
      const { plants } = await store.plants.list(longestAccount, { limit: pagePlants })
      expect(plants.map(({ id, name, tag }) => ({ id, name, tag }))).toEqual(
        expected.map(({ id, name, tag }) => ({ id, name, tag })),
      )
    })

    on('answers with a long plant that is there, and changes nothing', async (store) => {
      const kept = plantsOfEveryLength()
      for (const each of kept) await store.plants.create('a', each)
      for (const each of kept) {
        expect(await store.plants.create('a', plant(each.id))).toEqual(each)
        expect(
          await store.plants.create('a', plant(each.id, { name: 'n'.repeat(2000), tag: 'x' })),
        ).toEqual(each)
      }
      expect(await keptOf(store, 'a')).toEqual(kept)
    })

    on('answers the plant that is there, and changes nothing', async (store) => {
      const first = plant(7, { tag: 'indoor', idempotencyKey: 'key' })
      await store.plants.create('a', first)
      expect(
        await store.plants.create(
          'a',
          plant(7, { name: 'other', tag: null, idempotencyKey: 'other' }),
        ),
      ).toEqual(first)
      expect(await store.plants.create('a', plant(7))).toEqual(first)
      expect((await store.plants.list('a', { limit: 10 })).plants).toMatchObject([
        { id: 7n, name: 'plant 7', tag: 'indoor' },
      ])
    })

    on('lets one of sixteen racing creators of an id win', async (store) => {
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          store.plants.create('a', plant(1, { name: `racer ${n}` })),
        ),
      )
      const winners = answers.flatMap((answer, n) => (answer === undefined ? [`racer ${n}`] : []))
      expect(winners).toHaveLength(1)
      expect((await store.plants.list('a', { limit: 2 })).plants.map(({ name }) => name)).toEqual(
        winners,
      )
      for (const answer of answers)
        if (answer !== undefined) expect(answer.name).toBe(winners[0] as string)
    })

    on('lets one of sixteen creators win that race through two doors', async (store, opened) => {
      const other = await opened.reopen()
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          (n % 2 === 0 ? store : other).plants.create('a', plant(1)),
        ),
      )
      expect(answers.filter((answer) => answer === undefined)).toHaveLength(1)
      await other.close()
    })

    on('gives each of many writes at once its own outcome', async (store) => {
      await Promise.all(
        Array.from({ length: 500 }, (_, n) => store.plants.create('a', plant(n * 2))),
      )
      const creates = Array.from({ length: 1000 }, (_, n) => store.plants.create('a', plant(n)))
      const deletes = Array.from({ length: 1000 }, (_, n) => store.plants.delete('b', BigInt(n)))
      expect((await Promise.all(creates)).map((answer) => answer === undefined)).toEqual(
        Array.from({ length: 1000 }, (_, n) => n % 2 === 1),
      )
      expect((await Promise.all(deletes)).some((deleted) => deleted)).toBe(false)
    })
  })

  describe(`${name}: deleting`, () => {
    on('says whether the plant was there, and frees its id', async (store) => {
      await store.plants.create('a', plant(idMax))
      await store.plants.create('a', plant(idMax - 1n))
      expect(await store.plants.delete('a', idMax)).toBe(true)
      expect(await store.plants.delete('a', idMax)).toBe(false)
      expect(await ids(store)).toEqual([idMax - 1n])
      expect(await store.plants.create('a', plant(idMax, { name: 'again' }))).toBeUndefined()
    })

    on('frees an id for a text of any other length', async (store) => {
      const kept = plantsOfEveryLength()
      for (const each of kept) await store.plants.create('a', each)
      const others = kept.map(({ id }, n) => ({ ...(kept.at(-1 - n) as KeptPlant), id }))
      for (const other of others) {
        expect(await store.plants.delete('b', other.id)).toBe(false)
        expect(await store.plants.delete('a', other.id)).toBe(true)
        expect(await store.plants.delete('a', other.id)).toBe(false)
        expect(await store.plants.create('a', other)).toBeUndefined()
      }
      expect(await keptOf(store, 'a')).toEqual(others)
      expect(await Promise.all(kept.map(({ id }) => store.plants.delete('a', id)))).toEqual(
        kept.map(() => true),
      )
      expect(await keptOf(store, 'a')).toEqual([])
      expect(await store.kept.countPlants()).toBe(0)
    })

    on('lets one of sixteen racing removers have the plant', async (store) => {
      await store.plants.create('a', plant(1))
      const answers = await Promise.all(
        Array.from({ length: 16 }, () => store.plants.delete('a', 1n)),
      )
      expect(answers.filter((deleted) => deleted)).toHaveLength(1)
    })

    on('settles a create and a delete of one id in some order', async (store) => {
      for (let id = 0; id < 50; id += 1) {
        const [created, deleted] = await Promise.all([
          store.plants.create('a', plant(id)),
          store.plants.delete('a', BigInt(id)),
        ])
        expect(created).toBeUndefined()
        expect(await store.plants.delete('a', BigInt(id))).toBe(!deleted)
      }
    })
  })

  describe(`${name}: listing`, () => {
    on('orders by the number, from the least to the greatest', async (store) => {
      const given = [10n, 9n, -1n, 0n, idMax, idMin, -10n, 100n, 2n]
      for (const id of given) await store.plants.create('a', plant(id))
      expect(await ids(store)).toEqual([idMin, -10n, -1n, 0n, 2n, 9n, 10n, 100n, idMax])
    })

    on('keeps to its range and says whether more follows', async (store) => {
      for (let id = 1; id <= 10; id += 1) await store.plants.create('a', plant(id))
      const listed = async (
        range: Parameters<Store['plants']['list']>[1],
      ): Promise<[number[], boolean]> => {
        const { plants, more } = await store.plants.list('a', range)
        return [plants.map(({ id }) => Number(id)), more]
      }
      expect(await listed({ limit: 3 })).toEqual([[1, 2, 3], true])
      expect(await listed({ after: 3n, limit: 3 })).toEqual([[4, 5, 6], true])
      expect(await listed({ after: 7n, limit: 3 })).toEqual([[8, 9, 10], false])
      expect(await listed({ after: 7n, upTo: 9n, limit: 3 })).toEqual([[8, 9], false])
      expect(await listed({ upTo: 3n, limit: 2 })).toEqual([[1, 2], true])
      expect(await listed({ after: 10n, limit: 3 })).toEqual([[], false])
      expect(await listed({ after: idMax, limit: 3 })).toEqual([[], false])
      expect(await listed({ after: idMin, upTo: idMax, limit: 100 })).toEqual([
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        false,
      ])
    })

    on('ends a page early if its text is too much to hold', async (store) => {
      const name = 'n'.repeat(1_000_000)
      await Promise.all(
        Array.from({ length: 25 }, (_, n) => store.plants.create('a', plant(n, { name }))),
      )
      const { plants, more } = await store.plants.list('a', { limit: pagePlants })
      expect(more).toBe(true)
      expect(plants.length).toBeGreaterThanOrEqual(1)
      expect(plants.length * name.length).toBeLessThanOrEqual(pageTextMax + name.length)
    })

    on(
      'shows all that is kept of each plant, and counts them by account and over all',
      async (store) => {
        const kept = [
          plant(1, { tag: 'x', idempotencyKey: 'key' }),
          plant(2),
          plant(3, { name: 'other' }),
        ]
        for (const each of kept) await store.plants.create('a', each)
        await store.plants.create('b', plant(1))
        const { plants, more } = await store.kept.plants('a', { after: 0n, limit: 2 })
        expect([plants.map((each) => ({ ...each })), more]).toEqual([kept.slice(0, 2), true])
        expect(await store.kept.countPlants()).toBe(4)
        const accounts = ['a', 'b', 'c']
        expect(await Promise.all(accounts.map((each) => store.kept.countPlants(each)))).toEqual([
          3, 1, 0,
        ])
      },
    )

    on('finds the n-th plant', async (store) => {
      for (const id of [idMin, 5n, 6n, 7n, idMax]) await store.plants.create('a', plant(id))
      expect(await store.plants.nthId('a', undefined, 1)).toBe(idMin)
      expect(await store.plants.nthId('a', undefined, 5)).toBe(idMax)
      expect(await store.plants.nthId('a', undefined, 6)).toBeUndefined()
      expect(await store.plants.nthId('a', 5n, 2)).toBe(7n)
      expect(await store.plants.nthId('a', idMax, 1)).toBeUndefined()
      expect(await store.plants.nthId('b', undefined, 1)).toBeUndefined()
    })

    on('shows a reader its own acknowledged write at once, among other writers', async (store) => {
      const noise = Array.from({ length: 200 }, (_, n) => store.plants.create('noise', plant(n)))
      for (let id = 1; id <= 50; id += 1) {
        await store.plants.create('a', plant(id))
        expect((await ids(store)).at(-1)).toBe(BigInt(id))
        if (id % 2 === 0) await store.plants.delete('a', BigInt(id))
        expect((await ids(store)).includes(BigInt(id))).toBe(id % 2 === 1)
      }
      await Promise.all(noise)
    })

    on('shows a page as it stood at one moment', async (store) => {
      // Plant 1 and plant 2 take turns: created before the other is deleted, so one is always
      // there.
      await store.plants.create('a', plant(1))
      let writing = true
      const writer = (async () => {
        for (let n = 0; writing; n += 1) {
          await store.plants.create('a', plant(n % 2 === 0 ? 2 : 1))
          await store.plants.delete('a', n % 2 === 0 ? 1n : 2n)
        }
      })()
      for (let round = 0; round < 300; round += 1) {
        expect((await ids(store)).length).toBeGreaterThan(0)
        if (round % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      writing = false
      await writer
    })
  })

  describe(`${name}: accounts`, () => {
    on('never touch one another, whatever they are called', async (store) => {
      const accounts = [
        'a',
        'A',
        'a ',
        ' a',
        'a\u0001',
        'ä',
        'a\u0308',
        "a'b",
        '%',
        '_',
        'x'.repeat(255),
        '\ud83c\udf35',
      ]
      for (const account of accounts)
        expect(await store.plants.create(account, plant(7, { name: account }))).toBeUndefined()
      for (const account of accounts) {
        expect(
          (await store.plants.list(account, { limit: 10 })).plants.map(({ name }) => name),
        ).toEqual([account])
      }
      expect(await store.plants.delete('a', 7n)).toBe(true)
      expect(await ids(store, 'A')).toEqual([7n])
    })
  })

  describe(`${name}: tokens`, () => {
    on('are found by their hash, exactly as they were issued', async (store) => {
      const { plain, token } = await issueToken(
        store.tokens,
        { ...request, account: 'ä', label: '"\ud83c\udf35' },
        nowMs,
        randomBytes,
      )
      expect(await store.tokens.find(plain.hash())).toEqual(token)
      expect(await store.tokens.find(plainTokenFrom(randomBytes(32)).hash())).toBeUndefined()
    })

    on('are listed by account, oldest first', async (store) => {
      const issue = (account: string, atMs: number) =>
        issueToken(store.tokens, { ...request, account }, atMs, randomBytes)
      const [second, first, other] = [await issue('a', 2), await issue('a', 1), await issue('b', 3)]
      expect(await store.tokens.list('a')).toEqual([first.token, second.token])
      expect(await store.tokens.list()).toEqual([first.token, second.token, other.token])
      expect(await store.tokens.list('c')).toEqual([])
    })

    on(
      'are shown with their hashes, in the order of those, and known to be there',
      async (store) => {
        expect(await store.tokens.any()).toBe(false)
        const issued = await Promise.all(
          Array.from({ length: 20 }, () => issueToken(store.tokens, request, nowMs, randomBytes)),
        )
        expect(await store.tokens.any()).toBe(true)
        const all = issued
          .map(({ token, plain }): KeptToken => ({ ...token, hash: plain.hash() }))
          .sort((one, other) => Buffer.compare(one.hash, other.hash))
        const plain = (tokens: readonly KeptToken[]) =>
          tokens.map((token) => ({ ...token, hash: [...token.hash] }))
        expect(plain(await store.kept.tokens({ limit: 7 }))).toEqual(plain(all.slice(0, 7)))
        const [after, upTo] = [all[4]?.hash, all[9]?.hash]
        expect(plain(await store.kept.tokens({ after, limit: 7 }))).toEqual(plain(all.slice(5, 12)))
        expect(plain(await store.kept.tokens({ after, upTo, limit: 7 }))).toEqual(
          plain(all.slice(5, 10)),
        )
      },
    )

    on(
      'are revoked once, for every process within the time that the store states',
      async (store, opened) => {
        const other = await opened.reopen()
        const { plain, token } = await issueToken(store.tokens, request, nowMs, randomBytes)
        expect(await other.tokens.find(plain.hash())).toEqual(token)
        expect(await other.tokens.revoke(token.id, 5)).toEqual({ ...token, revokedAtMs: 5 })
        opened.passTime(store.tokens.delayMs)
        expect(await store.tokens.find(plain.hash())).toEqual({ ...token, revokedAtMs: 5 })
        expect(await store.tokens.revoke(token.id, 6)).toEqual({ ...token, revokedAtMs: 5 })
        expect(await store.tokens.revoke('unknown', 7)).toBeUndefined()
        await other.close()
      },
    )

    on('keep their last use', async (store) => {
      const { plain, token } = await issueToken(store.tokens, request, nowMs, randomBytes)
      await store.tokens.noteUse(token.id, 3_600_000)
      expect((await store.tokens.find(plain.hash()))?.lastUsedAtMs).toBe(3_600_000)
    })

    on('have one first among them', async (store) => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => issueFirstToken(store.tokens, request, nowMs, randomBytes)),
      )
      expect(answers.filter((answer) => answer !== undefined)).toHaveLength(1)
      expect(await store.tokens.list()).toHaveLength(1)
      expect(await issueFirstToken(store.tokens, request, nowMs, randomBytes)).toBeUndefined()
    })
  })

  describe(`${name}: life`, () => {
    on('is ready, and keeps what it holds when it is opened again', async (store, opened) => {
      await store.ready()
      await store.plants.create('a', plant(7))
      await store.close()
      const again = await opened.reopen()
      expect(await ids(again)).toEqual([7n])
      await again.close()
    })

    on('tells how many writes wait, and how large it is', async (store) => {
      const bytesBefore = await store.bytes()
      expect(bytesBefore).toBeGreaterThan(0)
      expect(store.waitingWrites()).toBe(0)
      const writes = Array.from({ length: 300 }, (_, n) => store.plants.create('a', plant(n)))
      expect(store.waitingWrites()).toBe(300)
      await Promise.all(writes)
      // They may lie in room that was free already.
      expect(await store.bytes()).toBeGreaterThanOrEqual(bytesBefore)
      expect(store.waitingWrites()).toBe(0)
    })

    on('finishes what was asked for before it closes', async (store, opened) => {
      const writes = Array.from({ length: 300 }, (_, n) => store.plants.create('a', plant(n)))
      await Promise.all([store.close(), store.close()])
      expect(await Promise.all(writes)).toEqual(Array(300).fill(undefined))
      const again = await opened.reopen()
      expect(await ids(again)).toHaveLength(300)
      await again.close()
    })

    on('refuses once it is closed', async (store) => {
      await store.close()
      await expect(store.plants.create('a', plant(1))).rejects.toMatchObject({
        refusal: expect.stringMatching(/store-unavailable|outcome-unknown/),
      })
      await expect(
        (async () => await store.plants.list('a', { limit: 1 }))(),
      ).rejects.toMatchObject({
        refusal: 'store-unavailable',
      })
      await expect(store.ready()).rejects.toMatchObject({ name: 'Failure' })
    })
  })
}
