// scripts/bun lab/scale-out/rolling.ts [--rounds N] [--sigterm-only]: two services on one database
// behind HAProxy (haproxy.cfg), restarted one after the other under load; counts the requests that
// failed.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { until } from '../../test/support/clock.ts'
import { freePort, host, killFamilies } from '../../test/support/operatingSystem.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'
import { type Running, start } from '../../test/support/process.ts'
import { launch, missingPrograms } from '../programs.ts'
import { countOf, interrupted, issueToken, migrate, startLoad, tell, verdict } from './services.ts'

interface Service {
  /** As haproxy.cfg names it. */
  readonly name: string
  readonly port: number
  running: Running
}

const quietMs = 1500

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      'sigterm-only': { type: 'boolean', default: false },
    },
  })
  const rounds = countOf('rounds', values.rounds)
  const missing = missingPrograms({ haproxy: 'haproxy' })
  if (missing !== undefined) {
    console.error(missing)
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'plants-rolling-'))
  const services: Service[] = []
  const proxies: ChildProcess[] = []
  const postgres = await startPostgres()
  const measured = measure(folder, postgres, services, proxies, rounds, !values['sigterm-only'])
  try {
    return await Promise.race([measured, interrupted()])
  } finally {
    // The database first: what is still being started fails then.
    await postgres.dispose()
    for (const { running } of services) running.process.kill('SIGKILL')
    await killFamilies(proxies.flatMap(({ pid }) => pid ?? []))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** `draining`: HAProxy is told before a service is stopped. */
async function measure(
  folder: string,
  postgres: PostgresServer,
  services: Service[],
  proxies: ChildProcess[],
  rounds: number,
  draining: boolean,
): Promise<number> {
  const store = postgres.url()
  const startOn = (port: number): Running =>
    start(['serve', '--port', String(port), '--store', store], folder)
  await migrate(store, folder)
  const token = await issueToken(store, 'load', folder)
  for (const name of ['one', 'two']) {
    const port = await freePort()
    services.push({ name, port, running: startOn(port) })
  }
  await Promise.all(services.map(({ running }) => running.url))
  const proxyPort = await freePort()
  proxies.push(startProxy(folder, proxyPort, services))
  const areUp = async (): Promise<boolean> => (await upServers(folder)).length === services.length
  await until('HAProxy has found both services', areUp)

  const load = startLoad([`http://${host}:${proxyPort}`], token)
  await Bun.sleep(quietMs)
  for (let round = 1; round <= rounds; round += 1)
    for (const service of services) {
      tell(`round ${round} of ${rounds}: restarting ${service.name}`)
      // What a rolling upgrade does to each process in turn.
      if (draining) {
        await setState(folder, service, 'drain')
        const isDrained = async (): Promise<boolean> => (await requestsOf(folder, service)) === 0
        await until(`${service.name} has no requests`, isDrained)
      }
      service.running.process.kill('SIGTERM')
      const { code, err } = await service.running.finished
      if (code !== 0) throw new Error(`${service.name} ended with ${code}: ${err.slice(-2000)}`)
      service.running = startOn(service.port)
      await service.running.url
      if (draining) await setState(folder, service, 'ready')
      const isUp = async (): Promise<boolean> => (await upServers(folder)).includes(service.name)
      await until(`${service.name} is up again`, isUp)
      await Bun.sleep(quietMs)
    }

  const nothingWrong = await verdict([load])
  const failed = Object.entries(load.statuses).filter(([answer]) => !/ 20[04]$/.test(answer))
  const failedCount = failed.reduce((sum, [, count]) => sum + count, 0)
  console.log(`${spawnSync('haproxy', ['-v'], { encoding: 'utf8' }).stdout.split('\n')[0]}
restarts: ${rounds * services.length}, ${draining ? 'each taken out of HAProxy before SIGTERM' : 'by SIGTERM alone'}
slowest: ${load.slowestMs.toFixed(0)} ms
failed requests: ${failedCount}`)
  return nothingWrong && failedCount === 0 ? 0 : 1
}

function startProxy(folder: string, proxyPort: number, services: readonly Service[]): ChildProcess {
  const [one, two] = services.map(({ port }) => String(port))
  const env = {
    PLANTS_ADMIN: join(folder, 'admin'),
    PLANTS_PORT: String(proxyPort),
    PLANTS_ONE: one,
    PLANTS_TWO: two,
  }
  const log = join(folder, 'haproxy.log')
  const child = launch(['haproxy', '-db', '-f', join(import.meta.dir, 'haproxy.cfg')], log, { env })
  child.once('exit', (code) => {
    if (code !== null) tell(`haproxy ended with ${code}: ${readFileSync(log, 'utf8')}`)
  })
  return child
}

async function setState(
  folder: string,
  { name }: Service,
  state: 'drain' | 'ready',
): Promise<void> {
  const answer = await askProxy(
    folder,
    `set server plants/${name} state ${state}; set server plants/${name}-unready state ${state}`,
  )
  if (answer.trim() !== '') throw new Error(`HAProxy says: ${answer}`)
}

async function upServers(folder: string): Promise<string[]> {
  return (await statistics(folder)).filter(({ status }) => status === 'UP').map(({ name }) => name)
}

async function requestsOf(folder: string, service: Service): Promise<number> {
  const own = (await statistics(folder)).filter(({ name }) => name.startsWith(service.name))
  return own.reduce((sum, { requests }) => sum + requests, 0)
}

interface ServerStatistics {
  readonly name: string
  readonly status: string
  /** Under way now. */
  readonly requests: number
}

/** The table that HAProxy gives as comma-separated values. */
async function statistics(folder: string): Promise<ServerStatistics[]> {
  const lines = (await askProxy(folder, 'show stat plants 4 -1').catch(() => '')).trim().split('\n')
  const heads = lines[0]?.replace('# ', '').split(',') ?? []
  return lines.slice(1).map((line) => {
    const cells = line.split(',')
    const cell = (head: string): string => cells[heads.indexOf(head)] ?? ''
    return { name: cell('svname'), status: cell('status'), requests: Number(cell('scur')) }
  })
}

function askProxy(folder: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(folder, 'admin')).setEncoding('utf8').setTimeout(5000)
    let answer = ''
    socket.on('data', (data) => {
      answer += String(data)
    })
    socket.on('end', () => resolve(answer))
    socket.on('timeout', () => socket.destroy(new Error('HAProxy does not answer')))
    socket.on('error', reject)
    socket.write(`${command}\n`)
  })
}

try {
  process.exit(await main())
} catch (error) {
  console.error(`rolling: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
