// How writes of several accounts share statements.
import { expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { sharedPostgres } from '../../support/postgres.ts'
import { locationOf, prepare, storeOptions } from '../../support/stores.ts'

const accounts = Array.from({ length: 64 }, (_, n) => `account ${n}`)
/** Each half of the accounts has batches of its own. */
const groups = 2

async function withStore(
  name: string,
  use: (store: Store, batches: () => Promise<number>) => Promise<void>,
): Promise<void> {
  const server = await sharedPostgres()
  const database = `${name}_${process.pid}`
  const url = await server.createDatabase(database)
  await prepare(url)
  const store = await openStore(locationOf(url), storeOptions)
  const batches = async (): Promise<number> =>
    (await server.sql('select 1 from batches', database)).length
  try {
    await use(store, batches)
  } finally {
    await store.close()
  }
}

const plant = { id: 7n, tag: null, idempotencyKey: null }

test('writes of many accounts share a few statements, and each has its own outcome', () =>
  withStore('sharing', async (store, batches) => {
    const evenAccounts = accounts.filter((_, n) => n % 2 === 0)
    const created = evenAccounts.map((account) =>
      store.plants.create(account, { ...plant, name: account }),
    )
    expect(await Promise.all(created)).toEqual(evenAccounts.map(() => undefined))
    expect(await batches()).toBe(groups)

    const all = accounts.map((account) =>
      store.plants.create(account, { ...plant, name: 'another' }),
    )
    expect((await Promise.all(all)).map((existing) => existing?.name)).toEqual(
      accounts.map((account, n) => (n % 2 === 0 ? account : undefined)),
    )
    expect(await batches()).toBe(2 * groups)

    await Promise.all(evenAccounts.map((account) => store.plants.delete(account, 7n)))
    const deleted = accounts.map((account) => store.plants.delete(account, 7n))
    expect(await Promise.all(deleted)).toEqual(accounts.map((_, n) => n % 2 === 1))
    expect(await batches()).toBe(4 * groups)
    for (const account of accounts)
      expect(await store.plants.list(account, { limit: 10 })).toEqual({ plants: [], more: false })
  }))

test('two writes of one plant never share a statement', () =>
  withStore('apart', async (store, batches) => {
    const outcomes = await Promise.all(
      [1, 2, 3].map((n) => store.plants.create('a', { ...plant, name: `name ${n}` })),
    )
    expect(outcomes.map((existing) => existing?.name)).toEqual([undefined, 'name 1', 'name 1'])
    expect(await batches()).toBe(3)
  }))

test('processes that write the same plants do not lock each other out', async () => {
  const server = await sharedPostgres()
  const database = `order_${process.pid}`
  const url = await server.createDatabase(database)
  await prepare(url)
  const stores = [
    await openStore(locationOf(url), storeOptions),
    await openStore(locationOf(url), storeOptions),
  ]
  const ids = Array.from({ length: 300 }, (_, n) => BigInt(n))
  const orders = [ids, ids.toReversed()]
  for (let round = 0; round < 5; round += 1)
    for (const write of [
      (store: Store, id: bigint) => store.plants.create('a', { ...plant, id, name: 'x' }),
      (store: Store, id: bigint) => store.plants.delete('a', id),
    ])
      await Promise.all(
        stores.flatMap((store, n) => orders[n]?.map(async (id) => void (await write(store, id)))),
      )
  for (const store of stores) await store.close()
  const [{ deadlocks } = {}] = await server.sql(
    `select deadlocks::int from pg_stat_database where datname = '${database}'`,
  )
  expect(deadlocks).toBe(0)
})
