// The servers under load, each a process of its own, pinned to one core.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { contenders as allPeers, type Contender as Peer } from './peers/contenders.ts'
import { pinned, serverCore } from './programs.ts'

export interface Contender {
  readonly name: string
  readonly store: 'none' | 'sqlite' | 'postgres'
  /** Starts it on a store: the path of a file, or the URL of a database. */
  readonly start: (store: string, environment?: Environment) => Promise<BenchServer>
}

export type Environment = Readonly<Record<string, string>>

export interface BenchServer {
  readonly url: string
  /** Empty for the ceiling, which asks for none. */
  readonly token: string
  readonly processId: number
  /** When its process was begun (performance.now()). */
  readonly startedMs: number
  readonly residentMiB: () => number
  /** The most resident memory since `forgetPeak`. */
  readonly peakMiB: () => number
  readonly forgetPeak: () => void
  /** Processor time that all its threads have taken so far. */
  readonly processorMs: () => number
  readonly stop: () => Promise<void>
}

const root = fileURLToPath(new URL('..', import.meta.url))

/** The service as a user starts it; its log is written and goes to /dev/null. */
export const service: Contender = {
  name: 'plants',
  store: 'sqlite',
  start: (path, environment) => startNew(`sqlite:${path}`, environment),
}

/** The same on a PostgreSQL database that is prepared. */
export const postgresService: Contender = { name: 'plants', store: 'postgres', start: startNew }

async function startNew(store: string, environment: Environment = {}): Promise<BenchServer> {
  const server = await startService(store, environment, '--first-token')
  return { ...server, token: await server.printed(tokenForm) }
}

const tokenForm = /plants_\w{49}/

/** The service on a store that holds tokens. */
export function startService(
  store: string,
  environment: Environment = {},
  ...options: readonly string[]
): Promise<Started> {
  return startServer(
    [`${root}bin/plants`, 'serve', '--port', '0', '--store', store, ...options],
    environment,
  )
}

/** The same runtime answering a constant: as fast as any service on it could be. */
export const ceiling: Contender = {
  name: 'ceiling',
  store: 'none',
  start: () => startServer([`${root}scripts/bun`, `${root}lab/ceiling.ts`]),
}

/** None where they are not installed. */
export const peers: readonly Contender[] = existsSync(`${root}lab/node_modules`)
  ? allPeers.map(contenderOf)
  : []

/** Those whose store is a file like the service's. */
export const sqlitePeers = peers.filter(({ store }) => store === 'sqlite')

const peerToken = 'peers-all-use-this-token'

function contenderOf({ name, command, args, environment, store }: Peer): Contender {
  return {
    name,
    store,
    start: async (where, more) => {
      const own = { ...environment, ...more, PORT: '0', STORE: where, TOKEN: peerToken }
      return { ...(await startServer([command, ...args], own)), token: peerToken }
    },
  }
}

interface Started extends BenchServer {
  /** What it prints that a pattern matches, as soon as it is there. */
  readonly printed: (pattern: RegExp) => Promise<string>
}

const running = new Set<ChildProcess>()
// Nothing is left behind, however the benchmark ends.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

async function startServer(
  command: readonly string[],
  environment: Environment = {},
): Promise<Started> {
  const startedMs = performance.now()
  const [program = '', ...args] = pinned(command, serverCore)
  const child = spawn(program, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  running.add(child)
  child.on('close', () => running.delete(child))
  let output = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  const printed = (pattern: RegExp): Promise<string> =>
    waitFor(child, () => pattern.exec(output)?.[0])
  const url = (await printed(/listening on http:\S+/)).slice('listening on '.length)
  return {
    url,
    token: '',
    processId: child.pid ?? 0,
    startedMs,
    printed,
    residentMiB: () => memoryMiB(child, 'VmRSS'),
    peakMiB: () => memoryMiB(child, 'VmHWM'),
    // proc_pid_clear_refs(5): 5 sets the peak to what is resident now.
    forgetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, '5'),
    processorMs: () => processorMs(child),
    stop: () => stop(child),
  }
}

async function waitFor(child: ChildProcess, found: () => string | undefined): Promise<string> {
  for (let waited = 0; waited < 10_000; waited += 1) {
    const value = found()
    if (value !== undefined) return value
    if (child.exitCode !== null || child.signalCode !== null) break
    await Bun.sleep(1)
  }
  child.kill('SIGKILL')
  throw new Error(`The server did not start: ${child.spawnargs.join(' ')}`)
}

function memoryMiB({ pid }: ChildProcess, field: 'VmRSS' | 'VmHWM'): number {
  const [, kibibytes] =
    new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ??
    []
  return Number(kibibytes) / 1024
}

/**
 * Linux counts in hundredths of a second (proc_pid_stat(5): utime and stime, after the name in
 * parentheses).
 */
function processorMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.on('close', () => resolve())
    child.kill('SIGTERM')
  })
}
