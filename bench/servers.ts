// The servers under load, each a process of its own, pinned to one core.
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface BenchServer {
  readonly url: string
  /** Empty for the ceiling, which asks for none. */
  readonly token: string
  /** From starting the process to the line that says it listens. */
  readonly startMs: number
  readonly residentMiB: () => number
  readonly stop: () => Promise<void>
}

const root = fileURLToPath(new URL('..', import.meta.url))

/** The service as a user starts it; its log is written and goes to /dev/null. */
export function startService(folder: string, core: number): Promise<BenchServer> {
  return startServer([`${root}bin/plants`, 'serve', '--port', '0', '--first-token'], folder, core)
}

/** The same runtime answering a constant: as fast as any service on it could be. */
export function startCeiling(folder: string, core: number): Promise<BenchServer> {
  return startServer([`${root}scripts/bun`, `${root}bench/ceiling.ts`], folder, core)
}

async function startServer(command: readonly string[], folder: string, core: number): Promise<BenchServer> {
  const startedMs = performance.now()
  const child = spawn('taskset', ['-c', String(core), ...command], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  const url = await waitFor(child, () => /listening on (http:\S+)/.exec(output)?.[1])
  const startMs = performance.now() - startedMs
  const token = command.includes('--first-token') ? await waitFor(child, () => /plants_\w{49}/.exec(output)?.[0]) : ''
  return { url, token, startMs, residentMiB: () => residentMiB(child), stop: () => stop(child) }
}

async function waitFor(child: ChildProcess, found: () => string | undefined): Promise<string> {
  for (let waited = 0; waited < 5000; waited += 1) {
    const value = found()
    if (value !== undefined) return value
    if (child.exitCode !== null) break
    await Bun.sleep(1)
  }
  child.kill('SIGKILL')
  throw new Error('The server did not start.')
}

function residentMiB({ pid }: ChildProcess): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kibibytes) / 1024
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on('close', () => resolve())
    child.kill('SIGTERM')
  })
}
