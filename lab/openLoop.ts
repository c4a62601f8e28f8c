// Loads a server at a constant rate (generator.ts) and reads what it measured: latency as a client
// sees it that does not wait for the server.
import { fileURLToPath } from 'node:url'
import { loaderCore, runPinned } from './programs.ts'
import type { Workload } from './workloads.ts'

/** Requests of one kind at a constant rate. */
export interface Stream {
  readonly name: string
  readonly workload: Workload
  readonly base: number
  readonly connections: number
  readonly ratePerSecond: number
}

export interface Order {
  readonly url: string
  readonly token: string
  readonly seconds: number
  readonly streams: readonly Stream[]
}

export interface Outcome {
  readonly name: string
  /** Answers that were no success, and connections that broke. */
  readonly failed: number
  /** Less than the rate that was asked for where the server did not keep up. */
  readonly answeredPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
}

const bun = fileURLToPath(new URL('../scripts/bun', import.meta.url))
const generator = fileURLToPath(new URL('./generator.ts', import.meta.url))

/** Rejects where any answer was no success. */
export async function openLoop(order: Order): Promise<readonly Outcome[]> {
  const outcomes = JSON.parse(
    await runPinned([bun, generator, JSON.stringify(order)], loaderCore),
  ) as readonly Outcome[]
  const bad = outcomes.find(({ failed }) => failed > 0)
  if (bad !== undefined)
    throw new Error(`${bad.failed} answers to ${bad.name} were no success; nothing was measured.`)
  return outcomes
}
