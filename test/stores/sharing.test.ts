// A store that wraps a store: what the readers of one turn share, and what they never share.
import { describe, expect, test } from 'bun:test'
import type { PlantPage, PlantRange, Store } from '../../src/domain/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { sharingReads } from '../../src/stores/sharing.ts'
import { folderMaker } from '../support/service.ts'
import { storeOptions } from '../support/stores.ts'

const newFolder = folderMaker()

/** A real store, shared. The test says when a turn ends, and sees what the real store is asked. */
async function sharedStore(): Promise<{
  readonly shared: Store
  readonly real: Store
  readonly asked: string[]
  readonly endTurn: () => void
}> {
  const location = { scheme: 'sqlite', path: `${newFolder()}/plants.db` } as const
  const real = await openStore(location, { ...storeOptions, use: 'create' })
  const asked: string[] = []
  const list = real.plants.list.bind(real.plants)
  real.plants.list = (account: string, range: PlantRange) => {
    asked.push(`${account} ${range.limit}`)
    return list(account, range)
  }
  const ends: (() => void)[] = []
  const shared = sharingReads(real, (ask) => void ends.push(ask))
  return { shared, real, asked, endTurn: () => ends.shift()?.() }
}

function namesOf(page: PlantPage): readonly string[] {
  return page.plants.map(({ name }) => name)
}

const monstera = { id: 1n, name: 'Monstera', tag: null, idempotencyKey: null }

describe('a store whose readers share', () => {
  test('is asked once for equal lists of one turn, and at the end of that turn', async () => {
    const { shared, real, asked, endTurn } = await sharedStore()
    const first = shared.plants.list('a', { limit: 20 })
    const second = shared.plants.list('a', { limit: 20 })
    expect(asked).toEqual([])
    // Acknowledged after both were asked for, but before the store is asked: both may show it.
    await real.plants.create('a', monstera)
    endTurn()
    expect(await first).toBe(await second)
    expect(namesOf(await first)).toEqual(['Monstera'])
    expect(asked).toEqual(['a 20'])
    await shared.close()
  })

  test('takes no further readers once the store is asked: the next turn asks again', async () => {
    const { shared, asked, endTurn } = await sharedStore()
    const before = shared.plants.list('a', { limit: 20 })
    endTurn()
    await shared.plants.create('a', monstera)
    const after = shared.plants.list('a', { limit: 20 })
    endTurn()
    expect([namesOf(await before), namesOf(await after)]).toEqual([[], ['Monstera']])
    expect(asked).toHaveLength(2)
    await shared.close()
  })

  test('keeps accounts, limits and ranges apart', async () => {
    const { shared, asked, endTurn } = await sharedStore()
    await shared.plants.create('a', monstera)
    const lists = [
      shared.plants.list('a', { limit: 20 }),
      shared.plants.list('b', { limit: 20 }),
      shared.plants.list('a', { limit: 2 }),
      shared.plants.list('a', { limit: 20, after: 1n }),
      shared.plants.list('a', { limit: 20, upTo: 0n }),
    ]
    endTurn()
    expect((await Promise.all(lists)).map(namesOf)).toEqual([
      ['Monstera'],
      [],
      ['Monstera'],
      [],
      [],
    ])
    expect(asked).toHaveLength(5)
    await shared.close()
  })

  test('tells each of them that the store failed', async () => {
    const { shared, real, endTurn } = await sharedStore()
    real.plants.list = () => {
      throw new Error('broken')
    }
    const lists = [1, 2].map(() => shared.plants.list('a', { limit: 20 }))
    endTurn()
    for (const list of lists) expect(Promise.resolve(list)).rejects.toThrow('broken')
    await shared.close()
  })

  test('reads the pages of a walk, which have an end, at once', async () => {
    const { shared, asked } = await sharedStore()
    await shared.plants.list('a', { limit: 20, upTo: 7n })
    expect(asked).toHaveLength(1)
    await shared.close()
  })

  test('notes the use of a token once, for all requests that come meanwhile', async () => {
    const { shared, real } = await sharedStore()
    const written = Promise.withResolvers<void>()
    let notes = 0
    real.tokens.noteUse = () => {
      notes += 1
      return written.promise
    }
    const all = [1, 2, 3].map(() => shared.tokens.noteUse('token', 3_600_000))
    expect(notes).toBe(1)
    written.resolve()
    await Promise.all(all)
    await shared.tokens.noteUse('token', 7_200_000)
    expect(notes).toBe(2)
    await shared.close()
  })
})
