// npm run bench: creates, lists of 20 and deletes per second over HTTP, each beside the same
// runtime answering a constant, in alternating rounds of one run. docs/benchmarks.md tells the method.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchServer, startCeiling, startService } from './servers.ts'
import { load, type Measured, missingTools } from './wrk.ts'

const serverCore = 0
const loaderCore = 1
const connections = 64
const seconds = 4
const rounds = 5
const warmupSeconds = 2

/** Requests in Lua; `n` counts within a run, `base` keeps the ids of different runs apart. */
const requests = {
  creates: (base: number) =>
    `return wrk.format("POST", "/plants", nil, '{"id":' .. string.format("%d", ${base} + n) .. ',"name":"Monstera deliciosa","tag":"indoor"}')`,
  lists: () => 'return wrk.format("GET", "/plants?limit=20")',
  deletes: (base: number) => `return wrk.format("DELETE", "/plants/" .. string.format("%d", ${base} + n))`,
}

type Kind = keyof typeof requests

/** Ids of one round are this far apart from those of the next: more than a round can create. */
const roundStride = 100_000_000

async function measure(server: BenchServer, kind: Kind, base: number, forSeconds: number): Promise<Measured> {
  return await load(
    { url: server.url, token: server.token, connections, seconds: forSeconds, request: requests[kind](base) },
    loaderCore,
  )
}

/**
 * One round: the ceiling and the service in turn, for each kind of request. Deletes take what the
 * creates of the round have made, so that each finds its plant, and end well before those do.
 */
async function round(
  service: BenchServer,
  ceiling: BenchServer,
  number: number,
): Promise<Record<Kind, readonly [Measured, Measured]>> {
  const base = number * roundStride
  const creates = [await measure(ceiling, 'creates', base, seconds), await measure(service, 'creates', base, seconds)] as const
  const lists = [await measure(ceiling, 'lists', base, seconds), await measure(service, 'lists', base, seconds)] as const
  const deletes = [
    await measure(ceiling, 'deletes', base, seconds / 2),
    await measure(service, 'deletes', base, seconds / 2),
  ] as const
  return { creates, lists, deletes }
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

function row(kind: Kind, measured: readonly (readonly [Measured, Measured])[]): string {
  const column = (pick: (pair: readonly [Measured, Measured]) => number, digits: number): string =>
    median(measured.map(pick)).toFixed(digits)
  const ratios = measured.map(([ceiling, service]) => service.requestsPerSecond / ceiling.requestsPerSecond)
  const cells = [
    kind === 'lists' ? 'lists of 20' : kind,
    column(([, service]) => service.requestsPerSecond, 0),
    column(([ceiling]) => ceiling.requestsPerSecond, 0),
    `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)})`,
    column(([, service]) => service.p50Ms, 2),
    column(([, service]) => service.p99Ms, 2),
  ]
  return cells.map((cell, index) => (index === 0 ? cell.padEnd(12) : cell.padStart(index === 3 ? 18 : 10))).join('')
}

async function main(): Promise<void> {
  const missing = missingTools()
  if (missing !== undefined) throw new Error(missing)
  const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
  const [service, ceiling] = [await startService(folder, serverCore), await startCeiling(folder, serverCore)]
  try {
    await Bun.sleep(1000)
    const idleMiB = service.residentMiB()
    const tell = (text: string): void => void (process.stderr.isTTY && process.stderr.write(`\r\u001b[K${text}`))
    tell('warming up')
    for (const server of [ceiling, service]) await measure(server, 'creates', 0, warmupSeconds)
    const measured: Record<Kind, readonly [Measured, Measured]>[] = []
    for (let number = 1; number <= rounds; number += 1) {
      tell(`round ${number} of ${rounds}`)
      measured.push(await round(service, ceiling, number))
    }
    tell('')
    console.log(
      `${connections} connections, server on one core, ${rounds} rounds of ${seconds} s; medians. Ceiling: the same runtime answering a constant.\n`,
    )
    console.log(
      `${' '.repeat(12)}${['per second', 'ceiling'].map((head) => head.padStart(10)).join('')}${'ratio (range)'.padStart(18)}${['p50 ms', 'p99 ms'].map((head) => head.padStart(10)).join('')}`,
    )
    for (const kind of ['creates', 'lists', 'deletes'] as const)
      console.log(
        row(
          kind,
          measured.map((each) => each[kind]),
        ),
      )
    console.log(`\nresident memory: ${idleMiB.toFixed(0)} MiB idle, ${service.residentMiB().toFixed(0)} MiB after the load`)
    console.log(`from starting the process to listening: ${service.startMs.toFixed(0)} ms`)
  } finally {
    await Promise.all([service.stop(), ceiling.stop()])
    rmSync(folder, { recursive: true })
  }
}

try {
  await main()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
