// How long clients wait if they do not wait for one another: the mix at constant rates, until a
// contender no longer keeps up.
import type { Bench } from '../bench.ts'
import { type Outcome, openLoop } from '../openLoop.ts'
import { type BenchServer, service, sqlitePeers } from '../servers.ts'
import { mix } from '../workloads.ts'
import { stock } from '../wrk.ts'

const ratesPerSecond = [1000, 2000, 5000, 10_000, 20_000, 30_000, 40_000]
const connections = 64
const rounds = 3
const seconds = 3
/**
 * Below this part of the rate a contender is behind, and its latency only tells how long it was
 * asked.
 */
const keptUp = 0.98

export interface Latency {
  readonly contender: string
  readonly ratePerSecond: number
  readonly round: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

/** Only of the rates that a contender kept up with. */
export function measureLatency(bench: Bench): Promise<readonly Latency[]> {
  return bench.withServers([service, ...sqlitePeers], async (servers) => {
    const results: Latency[] = []
    const behind = new Map<string, number>()
    for (const ratePerSecond of ratesPerSecond) {
      const keeping = servers.filter(({ contender }) => !behind.has(contender))
      for (const turn of bench.turns(`${ratePerSecond} requests per second`, rounds, keeping)) {
        const { contender, round, server } = turn
        if (behind.has(contender)) continue
        const { answeredPerSecond, ...outcome } = await measure(bench, server, ratePerSecond)
        if (answeredPerSecond < ratePerSecond * keptUp) behind.set(contender, ratePerSecond)
        else results.push({ ...outcome, contender, ratePerSecond, round })
      }
    }
    // A rate that one round did not keep up with says nothing in the others either.
    return results.filter(
      ({ contender, ratePerSecond }) =>
        ratePerSecond < (behind.get(contender) ?? Number.POSITIVE_INFINITY),
    )
  })
}

async function measure(
  bench: Bench,
  { url, token }: BenchServer,
  ratePerSecond: number,
): Promise<Outcome> {
  const stream = {
    name: mix.name,
    workload: mix,
    base: bench.newBase(),
    connections,
    ratePerSecond,
  }
  await stock({ url, tokens: [token], workload: mix, base: stream.base, connections })
  const [outcome] = await openLoop({ url, token, seconds, streams: [stream] })
  if (outcome === undefined) throw new Error('one stream has one outcome')
  return outcome
}
