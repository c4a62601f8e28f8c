// The servers under load, each a process of its own, pinned to one core.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Contender as Peer, contenders as peers } from './peers/contenders.ts'

export interface Contender {
  readonly name: string
  /** Starts it on a store of its own in a folder. */
  readonly start: (folder: string, core: number) => Promise<BenchServer>
}

export interface BenchServer {
  readonly url: string
  /** Empty for the ceiling, which asks for none. */
  readonly token: string
  /** From starting the process to the line that says it listens. */
  readonly startMs: number
  readonly residentMiB: () => number
  /** Processor time that all its threads have taken so far. */
  readonly processorMs: () => number
  readonly stop: () => Promise<void>
}

const root = fileURLToPath(new URL('..', import.meta.url))

/** The service as a user starts it; its log is written and goes to /dev/null. */
export const service: Contender = {
  name: 'plants',
  start: (folder, core) =>
    startServer([`${root}bin/plants`, 'serve', '--port', '0', '--store', `sqlite:${folder}/plants.db`, '--first-token'], core),
}

/** The same runtime answering a constant: as fast as any service on it could be. */
export const ceiling: Contender = {
  name: 'ceiling',
  start: (_folder, core) => startServer([`${root}scripts/bun`, `${root}bench/ceiling.ts`], core),
}

/** Those of the peers whose store is a file like the service's; none where they are not installed. */
export const sqlitePeers: readonly Contender[] = existsSync(`${root}bench/peers/node_modules`)
  ? peers.filter(({ store }) => store === 'sqlite').map(contenderOf)
  : []

const peerToken = 'peers-all-use-this-token'

function contenderOf({ name, command, args, environment }: Peer, index: number): Contender {
  return {
    name,
    start: async (folder, core) => {
      const store = join(folder, `peer-${index}.db`)
      const server = await startServer([command, ...args], core, { ...environment, PORT: '0', STORE: store, TOKEN: peerToken })
      return { ...server, token: peerToken }
    },
  }
}

async function startServer(
  command: readonly string[],
  core: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<BenchServer> {
  const startedMs = performance.now()
  const child = spawn('taskset', ['-c', String(core), ...command], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  const url = await waitFor(child, () => /listening on (http:\S+)/.exec(output)?.[1])
  const startMs = performance.now() - startedMs
  const token = command.includes('--first-token') ? await waitFor(child, () => /plants_\w{49}/.exec(output)?.[0]) : ''
  return {
    url,
    token,
    startMs,
    residentMiB: () => residentMiB(child),
    processorMs: () => processorMs(child),
    stop: () => stop(child),
  }
}

async function waitFor(child: ChildProcess, found: () => string | undefined): Promise<string> {
  for (let waited = 0; waited < 5000; waited += 1) {
    const value = found()
    if (value !== undefined) return value
    if (child.exitCode !== null) break
    await Bun.sleep(1)
  }
  child.kill('SIGKILL')
  throw new Error(`The server did not start: ${child.spawnargs.join(' ')}`)
}

function residentMiB({ pid }: ChildProcess): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}

/** Linux counts in hundredths of a second (proc_pid_stat(5): utime and stime, after the name in parentheses). */
function processorMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on('close', () => resolve())
    child.kill('SIGTERM')
  })
}
