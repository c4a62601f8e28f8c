// The promises of a store, on real PostgreSQL servers: with text ordered by bytes, as ICU has it,
// and on every database that PLANTS_TEST_STORES names, separated by spaces. Those are emptied.
import { afterAll } from 'bun:test'
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
    const store = await openStore(location, storeOptions)
    return {
      store,
      reopen: () => openStore(location, storeOptions),
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
