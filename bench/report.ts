// What was measured, as a table for people: medians, and ratios to the ceiling within their round.
import type { Measured } from './wrk.ts'

export interface Result extends Measured {
  readonly contender: string
  readonly workload: string
  readonly connections: number
  /** Processor time of the server for each request, in microseconds. */
  readonly processorUs: number
}

export interface Memory {
  readonly contender: string
  readonly idleMiB: number
  readonly startMs: number
}

const columns = ['contender', 'per second', 'of ceiling', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs'] as const

export function table(results: readonly Result[], memory: readonly Memory[]): string {
  const groups = Map.groupBy(results, ({ workload, connections }) => `${workload}, ${connections} connections`)
  const parts = [...groups].map(([title, group]) => [`\n${title}`, ...rows(group)].join('\n'))
  const idle = memory.map(
    ({ contender, idleMiB, startMs }) => `${contender}: ${idleMiB.toFixed(0)} MiB idle, listens after ${startMs.toFixed(0)} ms`,
  )
  return [...parts, '', ...idle].join('\n')
}

function rows(group: readonly Result[]): string[] {
  const contenders = Map.groupBy(group, ({ contender }) => contender)
  const ceilings = contenders.get('ceiling') ?? []
  const cells = [...contenders].map(([name, measured]) => cellsOf(name, measured, ceilings))
  const widths = columns.map((head, column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)))
  return [columns, ...cells].map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[column] ?? 0) + 2))).join(''),
  )
}

function cellsOf(name: string, measured: readonly Result[], ceilings: readonly Result[]): string[] {
  const of = (pick: (result: Result) => number, digits: number): string => median(measured.map(pick)).toFixed(digits)
  const ratios = measured.map((result, round) => result.requestsPerSecond / (ceilings[round]?.requestsPerSecond ?? Number.NaN))
  return [
    name,
    of(({ requestsPerSecond }) => requestsPerSecond, 0),
    `${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)}-${Math.max(...ratios).toFixed(3)})`,
    of(({ p50Ms }) => p50Ms, 2),
    of(({ p99Ms }) => p99Ms, 2),
    of(({ p999Ms }) => p999Ms, 2),
    of(({ processorUs }) => processorUs, 1),
  ]
}

export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
