// How much each contender does: every workload, over a range of connections, in alternating order;
// beside them the store alone, without HTTP.
import { fileURLToPath } from 'node:url'
import type { Bench, NamedServer } from '../bench.ts'
import { runPinned, serverCore } from '../programs.ts'
import { type BenchServer, bun, type Contender, ceiling, service, sqlitePeers } from '../servers.ts'
import type { StorageOrder, StorageResult } from '../storage.ts'
import {
  creates,
  deletes,
  listsOf20,
  listsOf1000,
  mix,
  variedLists,
  type Workload,
} from '../workloads.ts'
import { load, type Measured, stock } from '../wrk.ts'

export interface ThroughputPlan {
  readonly contenders: readonly Contender[]
  readonly workloads: readonly Workload[]
  readonly connections: readonly number[]
  readonly rounds: (connections: number) => number
  /** wrk takes whole seconds, and deletes take half of them. */
  readonly seconds: number
}

export const fullThroughput: ThroughputPlan = {
  contenders: [ceiling, service, ...sqlitePeers],
  workloads: [creates, deletes, listsOf20, variedLists, listsOf1000, mix],
  connections: [64, 1, 16, 256, 1000],
  // Only the first is in the tables; the others show how it changes.
  rounds: (connections) => (connections === 64 ? 5 : 1),
  seconds: 2,
}

/** One peer, one number of connections. */
export const quickThroughput: ThroughputPlan = {
  contenders: [ceiling, service, ...sqlitePeers.slice(0, 1)],
  workloads: [creates, deletes, listsOf20, mix],
  connections: [64],
  rounds: () => 2,
  seconds: 2,
}

export interface Throughput {
  readonly contender: string
  readonly workload: string
  readonly connections: number
  readonly round: number
  readonly requestsPerSecond: number
  /** Processor time of the server for each request, in microseconds. */
  readonly processorUs: number
  /**
   * The part of the time that the server's core worked for it: near 1, unless the loader was what
   * limited it.
   */
  readonly busy?: number
  /** What the server's process holds after it. */
  readonly residentMiB?: number
  /** Absent if there was no HTTP. */
  readonly latency?: Pick<Measured, 'p50Ms' | 'p99Ms' | 'p999Ms'>
}

export const storageName = 'store alone'

export function measureThroughput(
  bench: Bench,
  plan: ThroughputPlan,
): Promise<readonly Throughput[]> {
  return bench.withServers(plan.contenders, async (servers) => {
    const results: Throughput[] = []
    for (const connections of plan.connections) {
      const contenders = [...servers, { contender: storageName, server: undefined }]
      const rounds = plan.rounds(connections)
      for (const turn of bench.turns(`${connections} connections`, rounds, contenders)) {
        const { contender, round, server } = turn
        const measured =
          server === undefined
            ? await storage(plan, connections)
            : await measureAll(bench, { contender, server }, plan, connections)
        for (const one of measured) results.push({ contender, connections, round, ...one })
      }
    }
    return results
  })
}

type OneMeasured = Omit<Throughput, 'contender' | 'connections' | 'round'>

/** Every workload of a plan, once. */
export async function measureAll(
  bench: Bench,
  { contender, server }: Pick<NamedServer, 'contender' | 'server'>,
  { workloads, seconds }: Pick<ThroughputPlan, 'workloads' | 'seconds'>,
  connections: number,
): Promise<readonly OneMeasured[]> {
  const results: OneMeasured[] = []
  let base = 0
  for (const workload of workloads) {
    base = workload.deletes ? base : bench.newBase()
    try {
      results.push(await measure(server, workload, connections, base, seconds))
    } catch (error) {
      bench.failed(contender, error)
    }
  }
  return results
}

/** Deletes stop well before they reach the last plant of the creates before them. */
async function measure(
  { url, token, processorMs, residentMiB }: BenchServer,
  workload: Workload,
  connections: number,
  base: number,
  seconds: number,
): Promise<OneMeasured> {
  const asked = { url, tokens: [token], workload, base, connections }
  await stock(asked)
  const before = processorMs()
  const { requests, requestsPerSecond, ...latency } = await load({
    ...asked,
    seconds: workload.deletes ? seconds / 2 : seconds,
  })
  const processorUs = ((processorMs() - before) * 1000) / requests
  const busy = (processorUs * requestsPerSecond) / 1e6
  return {
    workload: workload.name,
    requestsPerSecond,
    processorUs,
    busy,
    residentMiB: residentMiB(),
    latency,
  }
}

const storageProgram = fileURLToPath(new URL('../storage.ts', import.meta.url))

/** Of writes only: which lists of a moment are one read is decided above the store. */
async function storage(
  { seconds }: ThroughputPlan,
  callers: number,
): Promise<readonly StorageResult[]> {
  const order: StorageOrder = { workloads: [creates, deletes], callers, seconds: seconds / 4 }
  return JSON.parse(await runPinned([bun, storageProgram, JSON.stringify(order)], serverCore))
}
