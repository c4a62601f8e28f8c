// scripts/bun lab/scale-out/deadRows.ts [--plants N]: how long a list of 20 takes after all but the
// last of an account's plants were deleted: while an older transaction is open, after its end, and
// after vacuum.
import { parseArgs } from 'node:util'
import { Client } from 'pg'
import { systemClock } from '../../src/clock.ts'
import type { Store } from '../../src/domain/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { locationOf, prepare, storeOptions } from '../../test/support/stores.ts'

const listsEach = 4

async function tellTimes(store: Store, when: string): Promise<void> {
  const times: string[] = []
  for (let n = 0; n < listsEach; n += 1) {
    const startMs = systemClock.monotonicMs()
    await store.plants.list('a', { limit: 20 })
    times.push(`${(systemClock.monotonicMs() - startMs).toFixed(1)} ms`)
  }
  console.log(`${when}: ${times.join(', ')}`)
}

const { values } = parseArgs({ options: { plants: { type: 'string', default: '5000000' } } })
const plants = Number(values.plants)
const server = await startPostgres({
  settings: { shared_buffers: '1GB', max_wal_size: '8GB', autovacuum: 'off' },
})
try {
  await prepare(server.url())
  console.error(`making ${plants} plants`)
  await server.sql(
    `insert into plants select 'a', n, 'plant ' || n, 'tag' from generate_series(1, ${plants}) as n`,
  )
  await server.sql('vacuum analyze plants')
  const store = await openStore(locationOf(server.url()), storeOptions)
  await tellTimes(store, 'before')
  const older = new Client(server.url())
  await older.connect()
  await older.query('begin isolation level repeatable read')
  await older.query('select 1 from plants limit 1')
  await server.sql(`delete from plants where id <= ${Math.floor(plants * 0.98)}`)
  await tellTimes(store, 'deleted, with an older transaction open')
  await older.query('commit')
  await older.end()
  // Another transaction number, by which the server sees that the older transaction has ended.
  await store.plants.create('b', { id: 1n, name: 'x', tag: null, idempotencyKey: null })
  await tellTimes(store, 'deleted')
  await server.sql('vacuum plants')
  await tellTimes(store, 'vacuumed')
  await store.close()
} finally {
  await server.dispose()
}
