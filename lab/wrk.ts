// Loads a server with wrk (Debian package "wrk"): a closed loop, in which each connection asks
// again as soon as it is answered. It shows how much a server can do.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loaderCore, runPinned } from './programs.ts'
import { creates, requestParts, type Step, stockOffset, type Workload } from './workloads.ts'

export interface Load {
  readonly url: string
  /** Who asks, in turn; one asks in most measurements. */
  readonly tokens: readonly string[]
  readonly workload: Workload
  /** Where the ids of this run begin. */
  readonly base: number
  readonly connections: number
  /** wrk takes whole seconds. */
  readonly seconds: number
}

export interface Measured {
  readonly requests: number
  readonly requestsPerSecond: number
  /**
   * wrk corrects its latencies: to one that took longer than the mean it adds those that would have
   * been due meanwhile.
   */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
}

/** Rejects if any answer was no success, because then nothing was measured. */
export async function load({
  url,
  tokens,
  workload,
  base,
  connections,
  seconds,
}: Load): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
  const script = join(folder, 'load.lua')
  writeFileSync(script, lua(workload, new URL(url).host, tokens, base))
  const options = [
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
  try {
    return read(await runPinned(['wrk', ...options], loaderCore))
  } catch (cause) {
    throw new Error(
      `${workload.name} from ${connections} connections: ${(cause as Error).message}`,
      { cause },
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Creates the plants that a workload deletes, if it is one that does. */
export async function stock({ workload, base, ...rest }: Omit<Load, 'seconds'>): Promise<void> {
  if (!workload.steps.some(({ ofStock }) => ofStock)) return
  await load({ ...rest, workload: creates, base: base + stockOffset, seconds: 1 })
}

/**
 * stepAt, in Lua. done() prints what wrk measured as JSON, with every answer of 400 or above and
 * every broken connection counted.
 */
function lua({ steps }: Workload, host: string, tokens: readonly string[], base: number): string {
  const requestOf = (step: Step, token: string): string =>
    luaTable(requestParts(step, host, token).map((text) => JSON.stringify(text)))
  const requests = tokens.map((token) => luaTable(steps.map((step) => requestOf(step, token))))
  return `
local requests = ${luaTable(requests)}
local ofStock = ${luaTable(steps.map(({ ofStock = false }) => String(ofStock)))}
local n = -2 -- wrk asks once before it sends anything
function request()
  n = n + 1
  local index = n % #ofStock + 1
  local number = ofStock[index] and ${stockOffset} + math.floor(n / #ofStock) or n
  local parts = requests[n % #requests + 1][index]
  if #parts == 1 then return parts[1] end
  return parts[1] .. string.format("%d", ${base} + number) .. parts[2]
end
function done(summary, latency)
  local bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format('{"requests":%d,"durationUs":%d,"bad":%d,"p50Us":%d,"p99Us":%d,"p999Us":%d}\\n',
    summary.requests, summary.duration, bad, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end`
}

function luaTable(items: readonly string[]): string {
  return `{${items.join(',')}}`
}

function read(output: string): Measured {
  const line = output.split('\n').find((candidate) => candidate.startsWith('{"requests"'))
  if (line === undefined) throw new Error(`wrk said nothing that can be read:\n${output}`)
  const { requests, durationUs, bad, p50Us, p99Us, p999Us } = JSON.parse(line) as Record<
    string,
    number
  >
  if (bad !== 0)
    throw new Error(`${bad} of ${requests} answers were no success; nothing was measured.`)
  return {
    requests: Number(requests),
    requestsPerSecond: (Number(requests) / Number(durationUs)) * 1e6,
    p50Ms: Number(p50Us) / 1000,
    p99Ms: Number(p99Us) / 1000,
    p999Ms: Number(p999Us) / 1000,
  }
}
