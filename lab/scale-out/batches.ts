// scripts/bun lab/scale-out/batches.ts [URL]: how many writes and lists per second the store on
// PostgreSQL does by itself, without HTTP, for one account and for many. It starts a server of its
// own, or uses the database of the URL, which it empties: its name must contain "test".
import { systemClock } from '../../src/clock.ts'
import type { Store } from '../../src/domain/store.ts'
import { openStore } from '../../src/stores/open.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { emptied, locationOf, prepare, storeOptions } from '../../test/support/stores.ts'
import { median } from '../statistics.ts'

const rounds = 5
const secondsEach = 1
const clientsOf = [
  { clients: 1, accounts: 1 },
  { clients: 16, accounts: 1 },
  { clients: 16, accounts: 16 },
  { clients: 64, accounts: 1 },
  { clients: 64, accounts: 64 },
  { clients: 256, accounts: 1 },
  { clients: 256, accounts: 256 },
]
const listed = 20

/** What each client does over and over, with ids that nobody else has. */
const operations: Readonly<
  Record<string, (store: Store, account: string, id: bigint) => Promise<unknown>>
> = {
  creates: (store, account, id) =>
    store.plants.create(account, { id, name: 'Monstera', tag: 'shade', idempotencyKey: null }),
  lists: async (store, account) => await store.plants.list(account, { limit: listed }),
  deletes: (store, account, id) => store.plants.delete(account, id),
}

async function main(url: string): Promise<void> {
  await prepare(url)
  await emptied(url)
  const store = await openStore(locationOf(url), storeOptions)
  const rates = new Map<string, number[]>()
  for (let round = 0; round < rounds; round += 1)
    for (const { clients, accounts } of clientsOf) {
      // The deletes remove what the creates of the round made, as far as they get.
      const firstId = BigInt(round) * 1_000_000_000n
      for (const [operation, work] of Object.entries(operations)) {
        const name = `${clients} ${accounts} ${operation}`
        const rate = await ratePerSecond(store, work, clients, accounts, firstId)
        rates.set(name, [...(rates.get(name) ?? []), rate])
      }
      process.stderr.write('.')
    }
  await store.close()
  console.log(
    `\n| clients | accounts | ${Object.keys(operations).join(' | ')} |\n|---:|---:|---:|---:|---:|`,
  )
  for (const { clients, accounts } of clientsOf) {
    const medians = Object.keys(operations).map((operation) =>
      Math.round(median(rates.get(`${clients} ${accounts} ${operation}`) ?? [])).toLocaleString(
        'en',
      ),
    )
    console.log(`| ${clients} | ${accounts} | ${medians.join(' | ')} |`)
  }
}

async function ratePerSecond(
  store: Store,
  work: (store: Store, account: string, id: bigint) => Promise<unknown>,
  clients: number,
  accounts: number,
  firstId: bigint,
): Promise<number> {
  const endMs = systemClock.monotonicMs() + secondsEach * 1000
  let done = 0
  const client = async (_: unknown, n: number): Promise<void> => {
    const account = `account ${n % accounts} of ${accounts} with ${clients} clients`
    for (let id = firstId + BigInt(n) * 1_000_000n; systemClock.monotonicMs() < endMs; id += 1n) {
      await work(store, account, id)
      done += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return done / secondsEach
}

const [given] = process.argv.slice(2)
if (given !== undefined && !/\/[^/]*test[^/]*$/.test(given.replace(/\?.*/, '')))
  throw new Error('the name of the database must contain "test", because it is emptied')
const server = given === undefined ? await startPostgres() : undefined
try {
  await main(given ?? server?.url() ?? '')
} finally {
  await server?.dispose()
}
