// scripts/bun lab/postgresBatches.ts: what it gives that the writes of an account share a
// statement. The same creates on a real PostgreSQL, once through the store, in batches, and once
// each with a statement of its own; from one account and from as many accounts as there are
// creators.
import { randomBytes } from 'node:crypto'
import type { KeptPlant } from '../src/domain/plant.ts'
import { openStore } from '../src/stores/open.ts'
import { Attempts } from '../src/stores/postgres/attempts.ts'
import { requestDeadlines } from '../src/stores/postgres/cluster/deadlines.ts'
import { Nodes } from '../src/stores/postgres/cluster/nodes.ts'
import type { PostgresLocation } from '../src/stores/postgres/location.ts'
import { statements } from '../src/stores/postgres/statements.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { locationOf, prepare, storeOptions } from '../test/support/stores.ts'
import { median } from './statistics.ts'

const rounds = 5
const roundMs = 1500

type Create = (account: string, plant: KeptPlant) => Promise<unknown>

async function createsPerSecond(
  create: Create,
  creators: number,
  accounts: number,
): Promise<number> {
  const endMs = performance.now() + roundMs
  let created = 0
  const run = async (creator: number): Promise<void> => {
    while (performance.now() < endMs) {
      const id = Buffer.from(randomBytes(8)).readBigInt64LE()
      await create(`account ${creator % accounts}`, {
        id,
        name: 'Monstera deliciosa',
        tag: 'indoor',
        idempotencyKey: null,
      })
      created += 1
    }
  }
  await Promise.all(Array.from({ length: creators }, (_, creator) => run(creator)))
  return (created / roundMs) * 1000
}

const server = await startPostgres({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } })
await prepare(server.url())
const location = locationOf(server.url())
const store = await openStore(location, storeOptions)
const nodes = new Nodes(location as PostgresLocation, requestDeadlines, () => {})
const attempts = new Attempts(nodes, requestDeadlines.operationMs, randomBytes)
const ways: Readonly<Record<string, Create>> = {
  batched: (account, plant) => store.plants.create(account, plant),
  single: (account, { id, name, tag, idempotencyKey }) =>
    attempts.write(statements.createPlants, [account, [id], [name], [tag], [idempotencyKey], [id]]),
}

for (const [creators, accounts] of [
  [1, 1],
  [16, 1],
  [64, 1],
  [64, 64],
  [256, 1],
] as const) {
  const results = Object.fromEntries(Object.keys(ways).map((way) => [way, [] as number[]]))
  for (let round = 0; round < rounds; round += 1)
    for (const [way, create] of Object.entries(ways))
      results[way]?.push(await createsPerSecond(create, creators, accounts))
  const shown = Object.entries(results).map(
    ([way, found]) => `${way} ${median(found).toFixed(0).padStart(6)}/s`,
  )
  console.log(
    `${String(creators).padStart(3)} creators, ${String(accounts).padStart(2)} accounts: ${shown.join(', ')}`,
  )
}
await store.close()
await nodes.close()
await server.dispose()
