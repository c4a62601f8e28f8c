// The promises of a store, on real PostgreSQL servers: with text ordered by bytes, as ICU has it,
// and on every database that PLANTS_TEST_STORES names, by URLs that are separated by spaces. Those
// are emptied.
import { afterAll } from 'bun:test'
import { systemClock } from '../../../src/clock.ts'
import type { Store } from '../../../src/domain/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { type PostgresServer, sharedPostgres, startPostgres } from '../../support/postgres.ts'
import {
  emptied,
  locationOf,
  prepare,
  storeOptions,
  type TestStore,
  temporaryDatabase,
} from '../../support/stores.ts'
import { describeStore } from '../conformance.ts'

function describeOn(name: string, newStore: () => Promise<TestStore>): void {
  describeStore(name, async () => {
    const { location, dispose } = await newStore()
    let passedMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs }
    const reopen = (): Promise<Store> => openStore(location, { ...storeOptions, clock })
    const store = await reopen()
    return {
      store,
      reopen,
      passTime: (ms) => {
        passedMs += ms
      },
      dispose: async () => {
        await store.close()
        await dispose()
      },
    }
  })
}

let icu: Promise<PostgresServer> | undefined
afterAll(async () => await (await icu)?.dispose())

describeOn('PostgreSQL, C locale', async () => temporaryDatabase(await sharedPostgres()))
describeOn('PostgreSQL, ICU locale', async () => {
  icu ??= startPostgres({ locale: 'icu' })
  return temporaryDatabase(await icu)
})

for (const url of (process.env['PLANTS_TEST_STORES'] ?? '')
  .split(/\s+/)
  .filter((each) => each !== '')) {
  const name = url.replace(/:\/\/.*@/, '://')
  // Its plants are removed, so it must be there for nothing else.
  if (!/\/[^/]*test[^/]*$/.test(name.replace(/\?.*/, '')))
    throw new Error(`${name}: the name of the database must contain "test"`)
  describeOn(name, async () => {
    await prepare(url)
    await emptied(url)
    return { location: locationOf(url), dispose: async () => {} }
  })
}
