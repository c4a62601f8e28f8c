// On a disk whose sync takes 5 ms: what each contender writes, and what reads pay while writes run.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench } from '../bench.ts'
import { type Outcome, openLoop, type Stream } from '../openLoop.ts'
import { type BenchServer, type Environment, service, sqlitePeers } from '../servers.ts'
import { median } from '../statistics.ts'
import { creates, deletes, listsOf20, mix, seededPlants } from '../workloads.ts'
import { measureAll, type Throughput } from './throughput.ts'

const syncMs = 5
const connections = 64
const rounds = 3
const plan = { workloads: [creates, deletes, mix], seconds: 2 }
const listsPerSecond = 1000
/** Of the creates that the service does at most. */
const createShare = 0.8
const readSeconds = 5

export interface SlowDisk {
  readonly throughput: readonly Throughput[]
  readonly lists: readonly ListsBesideCreates[]
}

export interface ListsBesideCreates {
  readonly round: number
  /** 0: alone. */
  readonly createsPerSecond: number
  /** Of the lists of 20. */
  readonly latency: Pick<Outcome, 'p50Ms' | 'p99Ms' | 'p999Ms' | 'maxMs'>
}

export async function measureSlowDisk(bench: Bench): Promise<SlowDisk> {
  const environment = slowSync(bench.folder)
  const throughput = await bench.withServers(
    [service, ...sqlitePeers],
    async (servers) => {
      for (const { contender, seedMs } of servers) {
        if (seedMs < seededPlants * syncMs)
          throw new Error(`${contender} did not wait for the slow sync`)
      }
      const results: Throughput[] = []
      for (const turn of bench.turns(`a sync of ${syncMs} ms`, rounds, servers)) {
        const { contender, round } = turn
        for (const one of await measureAll(bench, turn, plan, connections))
          results.push({ contender, connections, round, ...one })
      }
      return results
    },
    environment,
  )
  const createsMax = throughput.filter(
    ({ contender, workload }) => contender === service.name && workload === creates.name,
  )
  const createsPerSecond = Math.floor(
    createShare * median(createsMax.map(({ requestsPerSecond }) => requestsPerSecond)),
  )
  const lists = await bench.withServers(
    [service],
    ([only]) => listsBeside(bench, only?.server as BenchServer, createsPerSecond),
    environment,
  )
  return { throughput, lists }
}

async function listsBeside(
  bench: Bench,
  { url, token }: BenchServer,
  rate: number,
): Promise<readonly ListsBesideCreates[]> {
  const results: ListsBesideCreates[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const createsPerSecond of [0, rate]) {
      bench.tell(
        `a sync of ${syncMs} ms, lists beside ${createsPerSecond} creates per second, round ${round + 1} of ${rounds}`,
      )
      const lists: Stream = {
        name: listsOf20.name,
        workload: listsOf20,
        base: 0,
        connections: 16,
        ratePerSecond: listsPerSecond,
      }
      const beside = {
        name: creates.name,
        workload: creates,
        base: bench.newBase(),
        connections,
        ratePerSecond: createsPerSecond,
      }
      const streams = createsPerSecond === 0 ? [lists] : [lists, beside]
      const [outcome, created] = await openLoop({ url, token, seconds: readSeconds, streams })
      if (outcome === undefined) throw new Error('each stream has an outcome')
      const { p50Ms, p99Ms, p999Ms, maxMs } = outcome
      results.push({
        round,
        createsPerSecond: created?.answeredPerSecond ?? 0,
        latency: { p50Ms, p99Ms, p999Ms, maxMs },
      })
    }
  }
  return results
}

/** Compiles what makes a sync slow, and gives the environment that loads it. */
function slowSync(folder: string): Environment {
  const library = join(folder, 'slowSync.so')
  const source = fileURLToPath(new URL('../slowSync.c', import.meta.url))
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'])
  return { LD_PRELOAD: library, SLOW_SYNC_US: String(syncMs * 1000) }
}
