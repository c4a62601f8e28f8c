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

type Operation = 'creates' | 'lists' | 'deletes'
const operations: readonly Operation[] = ['creates', 'lists', 'deletes']

interface Client {
  readonly account: string
  readonly firstId: bigint
  created: bigint
}

async function main(url: string): Promise<void> {
  await prepare(url)
  await emptied(url)
  const store = await openStore(locationOf(url), storeOptions)
  const rates = new Map<string, number[]>()
  for (let round = 0; round < rounds; round += 1)
    for (const { clients: count, accounts } of clientsOf) {
      // New accounts in each round, so that no list steps over what earlier ones have deleted.
      const clients = Array.from({ length: count }, (_, n) => ({
        account: `${round}: ${n % accounts} of ${accounts} with ${count} clients`,
        firstId: BigInt(n) * 1_000_000n,
        created: 0n,
      }))
      for (const operation of operations) {
        const name = `${count} ${accounts} ${operation}`
        const rate = await ratePerSecond(store, operation, clients)
        rates.set(name, [...(rates.get(name) ?? []), rate])
      }
      process.stderr.write('.')
    }
  await store.close()
  console.log(`\n| clients | accounts | ${operations.join(' | ')} |\n|---:|---:|---:|---:|---:|`)
  for (const { clients, accounts } of clientsOf) {
    const medians = operations
      .map((operation) => median(rates.get(`${clients} ${accounts} ${operation}`) ?? []))
      .map((rate) => Math.round(rate).toLocaleString('en'))
    console.log(`| ${clients} | ${accounts} | ${medians.join(' | ')} |`)
  }
}

/** All clients at work for a second. Those that delete stop earlier if all they made is gone. */
async function ratePerSecond(
  { plants }: Store,
  operation: Operation,
  clients: readonly Client[],
): Promise<number> {
  const startMs = systemClock.monotonicMs()
  const isOver = (): boolean => systemClock.monotonicMs() > startMs + secondsEach * 1000
  let done = 0
  const work = async (client: Client): Promise<void> => {
    const { account, firstId } = client
    for (let n = 0n; !isOver() && (operation !== 'deletes' || n < client.created); n += 1n) {
      const id = firstId + n
      if (operation === 'creates') {
        await plants.create(account, { id, name: 'Monstera', tag: 'shade', idempotencyKey: null })
        client.created += 1n
      } else if (operation === 'deletes') await plants.delete(account, id)
      else await plants.list(account, { limit: listed })
      done += 1
    }
  }
  await Promise.all(clients.map(work))
  return (done / (systemClock.monotonicMs() - startMs)) * 1000
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
