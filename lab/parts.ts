// What the benchmark measures, by the names that its command takes.
import type { Bench } from './bench.ts'
import { measureFirstAnswers } from './parts/firstAnswer.ts'
import { measureGrowth } from './parts/growth.ts'
import { measureLatency } from './parts/latency.ts'
import { measurePostgres } from './parts/postgres.ts'
import { measureSlowDisk } from './parts/slowDisk.ts'
import { fullThroughput, measureThroughput } from './parts/throughput.ts'
import { measureWholeLists } from './parts/wholeList.ts'

export const parts = {
  throughput: (bench: Bench) => measureThroughput(bench, fullThroughput),
  latency: measureLatency,
  'first-answer': measureFirstAnswers,
  growth: measureGrowth,
  'whole-list': measureWholeLists,
  'slow-disk': measureSlowDisk,
  postgres: measurePostgres,
} as const

export type Part = keyof typeof parts

/** What was measured, by part; only of the parts that were asked for. */
export type Results = { machine: Readonly<Record<string, string>> } & {
  [Name in Part]?: Awaited<ReturnType<(typeof parts)[Name]>>
}
