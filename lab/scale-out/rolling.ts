// scripts/bun lab/scale-out/rolling.ts [--rounds N] [--sigterm-only] [--config FILE]: two services on
// one database behind HAProxy, restarted one after the other under load; counts the requests that
// failed.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'
import { type Running, run, start } from '../../test/support/process.ts'
import { Load } from './load.ts'
import {
  countFlag,
  freePorts,
  host,
  interrupted,
  killFamilies,
  launch,
  missing,
  until,
} from './processes.ts'

interface Service {
  /** As haproxy.cfg names it. */
  readonly name: string
  readonly port: number
  running: Running
}

interface Setting {
  readonly folder: string
  readonly config: string
  readonly rounds: number
  /** Whether HAProxy is told before a process is stopped. */
  readonly draining: boolean
  readonly postgres: PostgresServer
}

const loadOptions = { creators: 16, deleters: 6, readers: 6, pauseMs: 2, timeoutMs: 20_000 }
const waitMs = 30_000
const quietMs = 1500

const tell = (text: string): void => console.error(text)

async function main(args: readonly string[]): Promise<number> {
  const rounds = countFlag(args, '--rounds', 3, 100)
  if (missing(['haproxy']).length > 0) {
    tell("This needs Debian's package: apt-get install haproxy")
    return 2
  }
  const config = args.includes('--config')
    ? (args[args.indexOf('--config') + 1] ?? '')
    : join(import.meta.dir, 'haproxy.cfg')
  const folder = mkdtempSync(join(tmpdir(), 'plants-rolling-'))
  const services: Service[] = []
  const proxies: ChildProcess[] = []
  const postgres = await startPostgres()
  const setting = { folder, config, rounds, draining: !args.includes('--sigterm-only'), postgres }
  try {
    return await Promise.race([measure(setting, services, proxies), interrupted()])
  } finally {
    // The database first: what is still being started fails then.
    await postgres.dispose()
    for (const { running } of services) running.process.kill('SIGKILL')
    await killFamilies(proxies.flatMap(({ pid }) => (pid === undefined ? [] : [pid])))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(
  setting: Setting,
  services: Service[],
  proxies: ChildProcess[],
): Promise<number> {
  const { folder, postgres, rounds } = setting
  const store = ['--store', postgres.url()]
  await succeeding(run(['migrate', ...store], folder))
  const token = (
    await succeeding(run(['token', 'issue', '--account', 'load', ...store], folder))
  ).trim()
  const [proxyPort = 0, ...ports] = await freePorts(3)
  ports.forEach((port, index) => {
    const name = index === 0 ? 'one' : 'two'
    services.push({ name, port, running: startService(setting, port) })
  })
  await Promise.all(services.map(({ running }) => running.url))
  proxies.push(startProxy(setting, proxyPort, services))
  await until(
    'HAProxy has found both services',
    waitMs,
    async () => (await upServers(folder)).length === services.length,
  )

  const load = new Load({ ...loadOptions, urls: [`http://${host}:${proxyPort}`], token })
  load.start()
  await Bun.sleep(quietMs)
  for (let round = 1; round <= rounds; round += 1)
    for (const service of services) await restart(setting, service)
  const { answers, slowestMs } = load.end()
  await load.stop()

  const rows = await postgres.sql("select id from plants where account = 'load'")
  const losses = load.losses(new Set(rows.map(({ id }) => BigInt(String(id)))))
  const failed = [...answers].filter(([status]) => status !== 200 && status !== 204)
  const failedCount = failed.reduce((sum, [, count]) => sum + count, 0)
  console.log(`
${spawnSync('haproxy', ['-v'], { encoding: 'utf8' }).stdout.split('\n')[0]}
restarts: ${rounds * services.length}, ${setting.draining ? 'each taken out of HAProxy before SIGTERM' : 'by SIGTERM alone'}
answers: ${[...answers].map(([status, count]) => `${status === 0 ? 'none' : status}: ${count}`).join(', ')}
slowest: ${slowestMs.toFixed(0)} ms
failed: ${failedCount}
lost: ${losses.creates + losses.deletes + losses.denied}
contradictions: ${load.contradictionCount}${load.contradictions.map((what) => `\n  ${what}`).join('')}`)
  return failedCount + losses.creates + losses.deletes + losses.denied + load.contradictionCount ===
    0
    ? 0
    : 1
}

async function succeeding(command: ReturnType<typeof run>): Promise<string> {
  const { code, out, err } = await command
  if (code !== 0) throw new Error(err)
  return out
}

function startService({ folder, postgres }: Setting, port: number): Running {
  return start(['serve', '--port', String(port), '--store', postgres.url()], folder)
}

function startProxy(
  { folder, config }: Setting,
  proxyPort: number,
  services: readonly Service[],
): ChildProcess {
  const [one, two] = services.map(({ port }) => String(port))
  const env = {
    PATH: process.env['PATH'],
    PLANTS_ADMIN: join(folder, 'admin'),
    PLANTS_PORT: String(proxyPort),
    PLANTS_ONE: one,
    PLANTS_TWO: two,
  }
  const log = join(folder, 'haproxy.log')
  const child = launch(['haproxy', '-db', '-f', config], log, { env })
  child.once('exit', (code) => {
    if (code !== null) tell(`haproxy ended with ${code}: ${readFileSync(log, 'utf8')}`)
  })
  return child
}

/** What a rolling upgrade does to each process in turn. */
async function restart(setting: Setting, service: Service): Promise<void> {
  const { folder, draining } = setting
  tell(`restarting ${service.name}`)
  if (draining) {
    await setState(folder, service, 'drain')
    await until(
      `${service.name} has no requests`,
      waitMs,
      async () => (await requestsOf(folder, service)) === 0,
    )
  }
  service.running.process.kill('SIGTERM')
  const { code, err } = await service.running.finished
  if (code !== 0) throw new Error(`${service.name} ended with ${code}: ${err.slice(-2000)}`)
  service.running = startService(setting, service.port)
  await service.running.url
  if (draining) await setState(folder, service, 'ready')
  await until(`${service.name} is up again`, waitMs, async () =>
    (await upServers(folder)).includes(service.name),
  )
  await Bun.sleep(quietMs)
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
  process.exit(await main(process.argv.slice(2)))
} catch (error) {
  tell(`rolling: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
