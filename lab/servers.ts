// The servers under load, each a process of its own, pinned to one core: the service, the ceiling
// and the peers.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
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
  /** When its process was begun (performance.now()). */
  readonly startedMs: number
  readonly residentMiB: () => number
  /** The most resident memory since `forgetPeak`. */
  readonly peakMiB: () => number
  readonly forgetPeak: () => void
  /** Processor time that all its threads have taken so far. */
  readonly processorMs: () => number
  /** Ends it by SIGTERM, or as it is told, and gives its exit code. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>
}

const root = fileURLToPath(new URL('..', import.meta.url))
export const bun = `${root}scripts/bun`

/** The service on a store that holds tokens. Its log is written and goes to /dev/null. */
export function startService(
  store: string,
  environment: Environment = {},
  ...options: readonly string[]
): Promise<Started> {
  const command = [`${root}bin/plants`, 'serve', '--port', '0', '--store', store, ...options]
  return startServer(command, environment)
}

async function startNew(store: string, environment?: Environment): Promise<BenchServer> {
  const server = await startService(store, environment, '--first-token')
  return { ...server, token: await server.printed(/plants_\w{49}/) }
}

/** The service as a user starts it. */
export const service: Contender = {
  name: 'plants',
  store: 'sqlite',
  start: (path, environment) => startNew(`sqlite:${path}`, environment),
}

/** The same on a PostgreSQL database that is prepared. */
export const postgresService: Contender = { name: 'plants', store: 'postgres', start: startNew }

/** The same runtime answering a constant: as fast as any service on it could be. */
export const ceiling: Contender = {
  name: 'ceiling',
  store: 'none',
  start: () => startServer([bun, `${root}lab/ceiling.ts`]),
}

/**
 * Node as the lab's package pins it, where npm unpacks its program, so that no install script has
 * to put it elsewhere.
 */
export const peerNode = `${root}lab/node_modules/node-${process.platform}-${process.arch}/bin/node`
export const peerToken = 'peers-all-use-this-token'

function peer(
  name: string,
  store: Contender['store'],
  program: string,
  file: string,
  own: Environment = {},
): Contender {
  const start = async (where: string, environment?: Environment): Promise<BenchServer> => {
    const common = { NODE_ENV: 'production', PORT: '0', STORE: where, TOKEN: peerToken }
    const command = [program, `${root}lab/peers/${file}`]
    const server = await startServer(command, { ...common, ...own, ...environment })
    return { ...server, token: peerToken }
  }
  return { name, store, start }
}

/** lab/peers/README.md says what each is. None if they are not installed. */
export const peers: readonly Contender[] = existsSync(`${root}lab/node_modules`)
  ? [
      peer('Fastify, better-sqlite3', 'sqlite', peerNode, 'fastify-better-sqlite3.js'),
      peer('Express, better-sqlite3', 'sqlite', peerNode, 'express-better-sqlite3.js'),
      peer('Hono on Bun, bun:sqlite', 'sqlite', bun, 'hono-bun-sqlite.js'),
      peer('Elysia on Bun, bun:sqlite', 'sqlite', bun, 'elysia-bun-sqlite.js'),
      peer('Fastify, pg', 'postgres', peerNode, 'fastify-pg.js'),
      // Remembers a token for as long as the service does if its store is PostgreSQL.
      peer('Fastify, pg, tokens remembered', 'postgres', peerNode, 'fastify-pg.js', {
        TOKEN_CACHE_MS: '3000',
      }),
    ]
  : []

/** Those whose store is a file like the service's. */
export const sqlitePeers = peers.filter(({ store }) => store === 'sqlite')

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
  const closed = new Promise<number | null>((resolve) => child.on('close', resolve))
  void closed.then(() => running.delete(child))
  let output = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  const printed = async (pattern: RegExp): Promise<string> => {
    while (performance.now() < startedMs + 10_000 && running.has(child)) {
      const [found] = pattern.exec(output) ?? []
      if (found !== undefined) return found
      await Bun.sleep(1)
    }
    child.kill('SIGKILL')
    throw new Error(`The server did not start: ${command.join(' ')}`)
  }
  const statusMiB = (field: 'VmRSS' | 'VmHWM'): number => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024
  }
  return {
    url: (await printed(/listening on http:\S+/)).slice('listening on '.length),
    token: '',
    startedMs,
    printed,
    residentMiB: () => statusMiB('VmRSS'),
    peakMiB: () => statusMiB('VmHWM'),
    // proc_pid_clear_refs(5): 5 sets the peak to what is resident now.
    forgetPeak: () => writeFileSync(`/proc/${child.pid}/clear_refs`, '5'),
    // proc_pid_stat(5): utime and stime, after the name in parentheses, in hundredths of a second.
    processorMs: () => {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8').replace(/^.*\) /, '')
      const [user, system] = stat.split(' ').slice(11, 13)
      return (Number(user) + Number(system)) * 10
    },
    stop: (signal = 'SIGTERM') => {
      child.kill(signal)
      return closed
    },
  }
}
