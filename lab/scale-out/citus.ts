// scripts/bun lab/scale-out/citus.ts [--kills N] [--freezes N]: two services on a Citus cluster,
// under load of several accounts, while workers die and freeze in turn; measures the gaps and
// counts what was lost.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Load } from '../../test/support/load.ts'
import type { PostgresServer } from '../../test/support/postgres.ts'
import { type Running, start } from '../../test/support/process.ts'
import { tableText } from '../report.ts'
import { citusPrograms, startCitus, workerOf } from './citusCluster.ts'
import { conclude, countOf, interrupted, issueToken, migrate, startLoad, tell } from './services.ts'

const accounts = ['load1', 'load2', 'load3', 'load4']
const clientsPerAccount = 7
const quietMs = 5000
/** Longer than any statement may take, so that what waits for the worker is given up. */
const awayMs = 8000
const recoveryMs = 120_000

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '2' },
      freezes: { type: 'string', default: '2' },
    },
  })
  const kills = countOf('kills', values.kills)
  const freezes = countOf('freezes', values.freezes)
  const programs = citusPrograms()
  if (programs === undefined) {
    console.error('This needs Citus, installed into a PostgreSQL of Debian; see docs/scale-out.md.')
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'plants-citus-'))
  const servers: PostgresServer[] = []
  const services: Running[] = []
  const measured = measure(programs, servers, services, folder, kills, freezes)
  try {
    return await Promise.race([measured, interrupted()])
  } finally {
    tell('stopping')
    // The database first: what is still being started fails then.
    for (const server of servers) await server.dispose()
    for (const { process } of services) process.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(
  programs: string,
  servers: PostgresServer[],
  services: Running[],
  folder: string,
  kills: number,
  freezes: number,
): Promise<number> {
  tell(`starting Citus with ${programs}`)
  const cluster = await startCitus(programs, servers)
  const [version] = await cluster.coordinator.sql('select version(), citus_version()')
  tell(`${version?.['version']}; ${version?.['citus_version']}`)
  const store = cluster.coordinator.url()
  await migrate(store, folder)
  const tokens: string[] = []
  for (const account of accounts) tokens.push(await issueToken(store, account, folder))
  for (let number = 1; number <= 2; number += 1)
    services.push(start(['serve', '--port', '0', '--store', store], folder))
  const urls = await Promise.all(services.map(({ url }) => url))
  const loads = tokens.map((token) => startLoad(urls, token, clientsPerAccount))
  const homes = await Promise.all(accounts.map((account) => workerOf(cluster, account)))
  const loadsOn = (worker: PostgresServer): Load[] =>
    loads.filter((_, index) => homes[index] === worker)
  for (const worker of cluster.workers)
    if (loadsOn(worker).length === 0) throw new Error('a worker holds no account')

  await Bun.sleep(quietMs)
  const rows = [['nothing', '', gapOf(loads), slowestOf(loads)]]
  const strike = async (
    event: string,
    worker: PostgresServer,
    begin: () => void | Promise<void>,
    end: () => void | Promise<void>,
  ): Promise<void> => {
    tell(`${event}, port ${worker.port}`)
    for (const load of loads) load.measureAgain()
    await begin()
    await Bun.sleep(awayMs)
    tell('it comes back')
    await end()
    const struck = loadsOn(worker)
    await Promise.all(struck.map((load) => load.further(100, recoveryMs)))
    await Bun.sleep(quietMs)
    const others = loads.filter((load) => !struck.includes(load))
    rows.push([event, gapOf(struck), gapOf(others), slowestOf(loads)])
  }
  for (let number = 1; number <= Math.max(kills, freezes); number += 1) {
    const worker = cluster.workers[number % cluster.workers.length] as PostgresServer
    if (number <= kills)
      await strike(`worker killed (${number})`, worker, worker.kill, worker.start)
    if (number <= freezes)
      await strike(`worker frozen (${number})`, worker, worker.pause, worker.resume)
  }
  const columns = ['event', 'write gap of its accounts ms', 'of the others ms', 'slowest ms']
  console.log(tableText({ title: `A worker is away for ${awayMs} ms`, columns, rows }))
  return await conclude(services, loads)
}

/** The longest time for which one of the accounts got no write acknowledged. */
function gapOf(loads: readonly Load[]): string {
  return Math.max(...loads.map(({ gap }) => gap.lengthMs)).toFixed(0)
}

function slowestOf(loads: readonly Load[]): string {
  return Math.max(...loads.map(({ slowestMs }) => slowestMs)).toFixed(0)
}

try {
  process.exit(await main())
} catch (error) {
  console.error(`citus: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
