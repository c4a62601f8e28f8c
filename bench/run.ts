// npm run bench [-- --quick] [--connections N] [--json]: the service beside the ceiling and its peers, in turn and in
// alternating order within one run. docs/benchmarks.md tells the method.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Result, table } from './report.ts'
import { type BenchServer, type Contender, ceiling, service, sqlitePeers } from './servers.ts'
import { seededPlants, type Workload, workloads } from './workloads.ts'
import { load, missingTools } from './wrk.ts'

const serverCore = 0
const loaderCore = 1
/** Ids of one measurement are this far apart from those of the next: more than it can create. */
const stride = 10_000_000

interface Plan {
  readonly contenders: readonly Contender[]
  readonly workloads: readonly Workload[]
  readonly connections: readonly number[]
  readonly rounds: number
  /** wrk takes whole seconds, and deletes take half of them. */
  readonly seconds: number
}

const fullPlan: Plan = {
  contenders: [ceiling, service, ...sqlitePeers],
  workloads,
  connections: [1, 16, 64, 256, 1000],
  rounds: 3,
  seconds: 2,
}

/** Within a minute: one peer, one number of connections. */
const quickPlan: Plan = {
  contenders: [ceiling, service, ...sqlitePeers.slice(0, 1)],
  workloads: workloads.filter(({ name }) => name !== 'lists of 1,000'),
  connections: [64],
  rounds: 2,
  seconds: 2,
}

interface Started {
  readonly contender: Contender
  readonly server: BenchServer
}

async function start(contender: Contender, folder: string): Promise<Started> {
  const server = await contender.start(folder, serverCore)
  const { url, token } = server
  // One connection, so that the plants are exactly these.
  for (let id = 1; id <= seededPlants; id += 1) {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ id, name: 'Monstera deliciosa', tag: 'indoor' })
    const { status } = await fetch(`${url}/plants`, { method: 'POST', headers, body })
    if (status !== 200) throw new Error(`${contender.name} answers a create with ${status}`)
  }
  return { contender, server }
}

async function measure(
  { contender, server }: Started,
  workload: Workload,
  connections: number,
  base: number,
  seconds: number,
): Promise<Result> {
  const { url, token, processorMs } = server
  const before = processorMs()
  // Deletes stop well before they reach the last plant of the creates before them.
  const forSeconds = workload.deletes ? seconds / 2 : seconds
  const request = workload.request(base)
  const measured = await load({ url, token, connections, seconds: forSeconds, request }, loaderCore)
  const processorUs = ((processorMs() - before) * 1000) / measured.requests
  return { ...measured, processorUs, contender: contender.name, workload: workload.name, connections }
}

async function measureAll(plan: Plan, started: readonly Started[], tell: (text: string) => void): Promise<readonly Result[]> {
  const results: Result[] = []
  let base = stride
  for (const connections of plan.connections) {
    for (let round = 0; round < plan.rounds; round += 1) {
      // Who went first goes last in the next round.
      const order = started.map((_, index) => started[(index + round) % started.length] as Started)
      for (const each of order) {
        for (const workload of plan.workloads) {
          tell(`${connections} connections, round ${round + 1} of ${plan.rounds}: ${each.contender.name}, ${workload.name}`)
          if (!workload.deletes) base += stride
          results.push(await measure(each, workload, connections, base, plan.seconds))
        }
      }
    }
  }
  return results
}

function planned(plan: Plan, connections: string | undefined): Plan {
  if (connections === undefined) return plan
  if (!/^[1-9][0-9]{0,3}$/.test(connections)) throw new Error('--connections must be a number from 1 to 9999.')
  return { ...plan, connections: [Number(connections)] }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, connections: { type: 'string' } },
  })
  const missing = missingTools()
  if (missing !== undefined) throw new Error(missing)
  const plan = planned(values.quick ? quickPlan : fullPlan, values.connections)
  const tell = (text: string): void => void (process.stderr.isTTY && process.stderr.write(`\r\u001b[K${text}`))
  if (sqlitePeers.length === 0) console.error('bench: the peers are left out; npm ci --prefix bench/peers installs them.')
  const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
  const started: Started[] = []
  try {
    for (const contender of plan.contenders) started.push(await start(contender, folder))
    const memory = started.map(({ contender, server }) => ({
      contender: contender.name,
      idleMiB: server.residentMiB(),
      startMs: server.startMs,
    }))
    const results = await measureAll(plan, started, tell)
    tell('')
    console.log(values.json ? JSON.stringify({ memory, results }, undefined, 1) : table(results, memory))
  } finally {
    await Promise.all(started.map(({ server }) => server.stop()))
    rmSync(folder, { recursive: true })
  }
}

try {
  await main()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
