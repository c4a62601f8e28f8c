// Loads a server with wrk (Debian package "wrk") and reads what it measured.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Load {
  readonly url: string
  readonly connections: number
  readonly seconds: number
  /** A Lua function body that answers one request; `n` counts the requests of this run from 1, `json` are headers for a body. */
  readonly request: string
  readonly token: string
}

export interface Measured {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

/** Whether wrk and taskset, which pins programs to a core, are there; else a sentence that says what to do. */
export function missingTools(): string | undefined {
  const missing = ['wrk', 'taskset'].filter((tool) => spawnSync('which', [tool]).status !== 0)
  if (missing.length === 0) return undefined
  return `The benchmark needs ${missing.join(' and ')}: on Debian, apt-get install wrk util-linux.`
}

/** Runs wrk on a core of its own. Rejects where any answer was no success, because then nothing was measured. */
export async function load({ url, connections, seconds, request, token }: Load, core: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
  const script = join(folder, 'load.lua')
  writeFileSync(script, lua(request, token))
  const args = [
    '-c',
    String(core),
    'wrk',
    '-t1',
    `-c${connections}`,
    `-d${seconds}`,
    '--timeout',
    '10s',
    '--latency',
    '-s',
    script,
    url,
  ]
  const output = await outputOf('taskset', args)
  rmSync(folder, { recursive: true })
  return read(output)
}

/** One thread sends; done() prints what it measured as JSON, with every answer that was not 2xx counted. */
function lua(request: string, token: string): string {
  return `
local n = 0
wrk.headers["Authorization"] = "Bearer ${token}"
local json = { ["Authorization"] = "Bearer ${token}", ["Content-Type"] = "application/json" }
function request() n = n + 1; ${request} end
function done(summary, latency)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('{"requests":%d,"durationUs":%d,"bad":%d,"p50Us":%d,"p99Us":%d,"p999Us":%d}\\n',
    summary.requests, summary.duration, bad, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end`
}

function read(output: string): Measured {
  const line = output.split('\n').find((candidate) => candidate.startsWith('{"requests"'))
  if (line === undefined) throw new Error(`wrk said nothing that can be read:\n${output}`)
  const { requests, durationUs, bad, p50Us, p99Us, p999Us } = JSON.parse(line) as Record<string, number>
  if (bad !== 0) throw new Error(`${bad} of ${requests} answers were no success; nothing was measured.`)
  return {
    requests: Number(requests),
    requestsPerSecond: (Number(requests) / Number(durationUs)) * 1e6,
    p50Ms: Number(p50Us) / 1000,
    p99Ms: Number(p99Us) / 1000,
    p999Ms: Number(p999Us) / 1000,
  }
}

function outputOf(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    output += data
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve(output))
  })
}
