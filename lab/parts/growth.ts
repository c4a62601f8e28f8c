// What a million times the plants cost: lists of 20 and creates on a store with many plants, beside
// one with a thousand, in turn.
import { copyFileSync, rmSync } from 'node:fs'
import { type Bench, rotated } from '../bench.ts'
import { seedStore } from '../seed.ts'
import { type BenchServer, startService } from '../servers.ts'
import { creates, listsOf20, type Workload } from '../workloads.ts'
import { load } from '../wrk.ts'

const smallestPlants = 1000
const sizes = [10_000, 100_000, 1_000_000, 10_000_000]
/**
 * If many accounts ask in turn, fewer connections than there are accounts at the least, so that no
 * two lists of a moment are one.
 */
const connectionsOf = { one: 64, many: 32 }
const rounds = 3
const seconds = 2
/** Every account that is asked holds as many, so that all lists of 20 are alike. */
const plantsOfAccountMin = 20
/** As many accounts ask, at most, from all over the store. */
const askersMax = 5000

export interface Growth {
  readonly accounts: number
  readonly plants: number
  readonly workload: string
  readonly round: number
  readonly requestsPerSecond: number
  /** To what the store with a thousand plants did in the same round. */
  readonly ratio: number
}

/** A file with plants, of which each round takes a copy. */
interface Seeded {
  readonly path: string
  readonly tokens: readonly string[]
}

export async function measureGrowth(bench: Bench): Promise<readonly Growth[]> {
  const results: Growth[] = []
  for (const accounts of [1, 100_000]) {
    const smallest = await seeded(bench, smallestPlants, accounts)
    for (const plants of sizes) {
      bench.tell(`${plants} plants, ${accounts} accounts: filling the store`)
      const large = await seeded(bench, plants, accounts)
      for (let round = 0; round < rounds; round += 1) {
        bench.tell(`${plants} plants, ${accounts} accounts: round ${round + 1} of ${rounds}`)
        for (const one of await compare(bench, large, smallest, round))
          results.push({ accounts, plants, round, ...one })
      }
      rmSync(large.path)
    }
  }
  return results
}

async function seeded(bench: Bench, plants: number, accounts: number): Promise<Seeded> {
  const path = bench.newStore()
  const plantsOfAccount = accounts === 1 ? plants : Math.max(plantsOfAccountMin, plants / accounts)
  const tokens = await seedStore(path, accounts, plants, plantsOfAccount)
  const holders = tokens.slice(0, plants / plantsOfAccount)
  const nth = Math.ceil(holders.length / askersMax)
  return { path, tokens: holders.filter((_, index) => index % nth === 0) }
}

type Compared = Pick<Growth, 'workload' | 'requestsPerSecond' | 'ratio'>

async function compare(
  bench: Bench,
  large: Seeded,
  smallest: Seeded,
  round: number,
): Promise<readonly Compared[]> {
  const running = new Map<Seeded, BenchServer>()
  try {
    for (const store of [large, smallest]) running.set(store, await startOnCopy(bench, store))
    const results: Compared[] = []
    for (const workload of [listsOf20, creates]) {
      const found = new Map<Seeded, number>()
      for (const store of rotated([large, smallest], round))
        found.set(
          store,
          await requestsPerSecond(bench, running.get(store) as BenchServer, store, workload),
        )
      const ofLarge = found.get(large) as number
      results.push({
        workload: workload.name,
        requestsPerSecond: ofLarge,
        ratio: ofLarge / (found.get(smallest) as number),
      })
    }
    return results
  } finally {
    await Promise.all([...running.values()].map((server) => server.stop()))
  }
}

async function startOnCopy(bench: Bench, { path }: Seeded): Promise<BenchServer> {
  const copy = bench.newStore()
  copyFileSync(path, copy)
  const server = await startService(`sqlite:${copy}`)
  return {
    ...server,
    stop: async () => {
      const code = await server.stop()
      rmSync(copy)
      return code
    },
  }
}

/** Once before it counts: code is compiled, and pages of the file are in memory. */
async function requestsPerSecond(
  bench: Bench,
  { url }: BenchServer,
  { tokens }: Seeded,
  workload: Workload,
): Promise<number> {
  const connections = tokens.length === 1 ? connectionsOf.one : connectionsOf.many
  const run = (forSeconds: number) =>
    load({ url, tokens, workload, base: bench.newBase(), connections, seconds: forSeconds })
  await run(1)
  return (await run(seconds)).requestsPerSecond
}
