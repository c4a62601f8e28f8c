// What was measured, as tables for people: Markdown, as the paper has them, and aligned for a
// terminal. Medians over the rounds; a ratio is the median of the ratios within each round, with
// the least and the most.
import type { FirstAnswer } from './parts/firstAnswer.ts'
import type { Growth } from './parts/growth.ts'
import type { Latency } from './parts/latency.ts'
import type { PostgresCreates } from './parts/postgres.ts'
import type { ListsBesideCreates, SlowDisk } from './parts/slowDisk.ts'
import type { Throughput } from './parts/throughput.ts'
import type { WholeList } from './parts/wholeList.ts'
import type { Results } from './parts.ts'
import { ceiling, service } from './servers.ts'
import { median, ratiosWithinRounds } from './statistics.ts'

/** A heading and a table under it, the first column to the left, the others to the right. */
export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const summaryConnections = 64

export function report(results: Results): string {
  const tables: Table[] = [
    { title: 'Machine', columns: ['', ''], rows: Object.entries(results.machine) },
  ]
  if (results.throughput) tables.push(...throughputTables(results.throughput, ceiling.name, ''))
  if (results.latency) tables.push(latencyTable(results.latency))
  if (results['first-answer']) tables.push(firstAnswerTable(results['first-answer']))
  if (results.growth) tables.push(...growthTables(results.growth))
  if (results['whole-list']) tables.push(wholeListTable(results['whole-list']))
  if (results['slow-disk']) tables.push(...slowDiskTables(results['slow-disk']))
  if (results.postgres) tables.push(postgresTable(results.postgres))
  return tables.map(tableText).join('\n\n')
}

/** First all workloads side by side, then each by itself. */
function throughputTables(
  results: readonly Throughput[],
  reference: string,
  condition: string,
): readonly Table[] {
  return [
    summaryTable(results, reference, condition),
    ...workloadTables(results, reference, condition),
  ]
}

function summaryTable(results: readonly Throughput[], reference: string, condition: string): Table {
  const shown = results.filter(({ connections }) => connections === summaryConnections)
  const workloads = [...new Set(shown.map(({ workload }) => workload))]
  const rows = byContender(shown).map(([contender, measured]) => [
    contender,
    ...workloads.map((name) => {
      const of = measured.filter(({ workload }) => workload === name)
      const references = shown.filter(
        ({ workload, contender: other }) => workload === name && other === reference,
      )
      const rate = middle(of, ({ requestsPerSecond }) => requestsPerSecond, 0)
      return of.length === 0
        ? ''
        : `${rate} (${median(ratiosWithinRounds(of, references)).toFixed(3)})`
    }),
  ])
  const title = `Per second from ${summaryConnections} connections${condition}, and as a part of ${reference}`
  return { title, columns: ['', ...workloads], rows }
}

function workloadTables(
  results: readonly Throughput[],
  reference: string,
  condition: string,
): readonly Table[] {
  const groups = Map.groupBy(
    results,
    ({ workload, connections }) => `${workload}, ${connections} connections${condition}`,
  )
  return [...groups].map(([title, group]) => {
    const references = group.filter(({ contender }) => contender === reference)
    const ofService = group.filter(({ contender }) => contender === service.name)
    const rows = byContender(group).map(([contender, measured]) => [
      contender,
      middle(measured, ({ requestsPerSecond }) => requestsPerSecond, 0),
      spread(ratiosWithinRounds(measured, references)),
      spread(ratiosWithinRounds(ofService, measured)),
      middle(measured, ({ latency }) => latency?.p50Ms, 2),
      middle(measured, ({ latency }) => latency?.p99Ms, 2),
      middle(measured, ({ latency }) => latency?.p999Ms, 2),
      middle(measured, ({ processorUs }) => processorUs, 1),
      middle(measured, ({ busy }) => busy, 2),
      middle(measured, ({ residentMiB }) => residentMiB, 0),
    ])
    const measures = ['p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs', 'busy', 'MiB']
    return {
      title,
      columns: ['', 'per second', `of ${reference}`, `${service.name} to it`, ...measures],
      rows,
    }
  })
}

function latencyTable(results: readonly Latency[]): Table {
  const rates = [...new Set(results.map(({ ratePerSecond }) => ratePerSecond))]
  const rows = byContender(results).map(([contender, measured]) => [
    contender,
    ...rates.map((rate) => {
      const at = measured.filter(({ ratePerSecond }) => ratePerSecond === rate)
      const of = (pick: (one: Latency) => number): string => middle(at, pick, 2)
      return at.length === 0
        ? 'behind'
        : `${of(({ p50Ms }) => p50Ms)} / ${of(({ p99Ms }) => p99Ms)} / ${of(({ p999Ms }) => p999Ms)}`
    }),
  ])
  return {
    title: 'Mix at a constant rate, p50 / p99 / p99.9 in ms',
    columns: ['', ...rates.map((rate) => `${whole(rate)}/s`)],
    rows,
  }
}

function firstAnswerTable(results: readonly FirstAnswer[]): Table {
  const rows = results.map(({ contender, plants, firstAnswerMs, idleMiB }) => [
    contender,
    whole(plants),
    firstAnswerMs.toFixed(0),
    idleMiB.toFixed(0),
  ])
  return {
    title: 'From start to first answer',
    columns: ['', 'plants', 'first answer, ms', 'idle, MiB'],
    rows,
  }
}

function growthTables(results: readonly Growth[]): readonly Table[] {
  const sizes = [...new Set(results.map(({ plants }) => plants))]
  const groups = Map.groupBy(
    results,
    ({ accounts, workload }) =>
      `${workload}, ${whole(accounts)} ${accounts === 1 ? 'account' : 'accounts'}`,
  )
  const rows = [...groups].map(([name, group]) => [
    name,
    ...sizes.map((size) =>
      spread(group.filter(({ plants }) => plants === size).map(({ ratio: of }) => of)),
    ),
  ])
  return [
    {
      title: 'Growth: to a store with 1,000 plants',
      columns: ['', ...sizes.map((size) => `${whole(size)} plants`)],
      rows,
    },
  ]
}

function wholeListTable(results: readonly WholeList[]): Table {
  const rows = [...Map.groupBy(results, ({ reader }) => reader)].map(([reader, measured]) => [
    reader,
    middle(measured, ({ megabytesPerSecond }) => megabytesPerSecond, 0),
    most(measured, ({ peakAboveFreshMiB }) => peakAboveFreshMiB),
    most(measured, ({ peakAboveUsedMiB }) => peakAboveUsedMiB),
    middle(measured, ({ others }) => others.p50Ms, 2),
    middle(measured, ({ others }) => others.p99Ms, 2),
    most(measured, ({ others }) => others.maxMs),
  ])
  const columns = [
    'reader',
    'MB/s',
    'above fresh, most MiB',
    'above used, most MiB',
    'others: p50 ms',
    'p99 ms',
    'most ms',
  ]
  return { title: 'A list of 1,000,000 plants', columns, rows }
}

function slowDiskTables({ throughput, lists }: SlowDisk): readonly Table[] {
  const groups = Map.groupBy(lists, ({ createsPerSecond }) =>
    createsPerSecond === 0 ? 'alone' : 'beside creates',
  )
  const latency = (
    of: readonly ListsBesideCreates[],
    pick: keyof ListsBesideCreates['latency'],
  ): string => middle(of, (one) => one.latency[pick], 2)
  const rows = [...groups].map(([name, of]) => [
    name,
    middle(of, ({ createsPerSecond }) => createsPerSecond, 0),
    latency(of, 'p50Ms'),
    latency(of, 'p99Ms'),
    latency(of, 'p999Ms'),
  ])
  const columns = ['', 'creates per second', 'p50 ms', 'p99 ms', 'p99.9 ms']
  return [
    ...throughputTables(throughput, service.name, ', a sync of 5 ms'),
    { title: 'Lists of 20, a sync of 5 ms', columns, rows },
  ]
}

function postgresTable(results: readonly PostgresCreates[]): Table {
  const references = results.filter(({ contender }) => contender === service.name)
  const rows = byContender(results).map(([contender, measured]) => [
    contender,
    middle(measured, ({ requestsPerSecond }) => requestsPerSecond, 0),
    spread(ratiosWithinRounds(references, measured)),
  ])
  return {
    title: 'Creates on PostgreSQL, 64 connections',
    columns: ['', 'per second', `${service.name} to it`],
    rows,
  }
}

/** Their names, the service's first. */
export function contenders(rows: readonly { readonly contender: string }[]): readonly string[] {
  const names = [...new Set(rows.map(({ contender }) => contender))]
  return [
    ...names.filter((name) => name === service.name),
    ...names.filter((name) => name !== service.name),
  ]
}

function byContender<Row extends { readonly contender: string }>(
  rows: readonly Row[],
): readonly (readonly [string, readonly Row[]])[] {
  return [...Map.groupBy(rows, ({ contender }) => contender)]
}

function spread(ratios: readonly number[]): string {
  if (ratios.length === 0) return ''
  return `${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)}-${Math.max(...ratios).toFixed(3)})`
}

/** The median of a number in each of several rows; empty where they have none. */
function middle<Row>(
  rows: readonly Row[],
  pick: (row: Row) => number | undefined,
  digits: number,
): string {
  const values = rows.map(pick).filter((value) => value !== undefined)
  if (values.length === 0) return ''
  return digits === 0 ? whole(median(values)) : median(values).toFixed(digits)
}

/** Of a number for which a bound holds: the worst of the rounds. */
function most<Row>(rows: readonly Row[], pick: (row: Row) => number): string {
  return Math.max(...rows.map(pick)).toFixed(1)
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}

export function tableText({ title, columns, rows }: Table): string {
  const widths = columns.map((head, column) =>
    Math.max(head.length, 4, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (column === 0 ? (cells[0] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width))).join(' | ')} |`
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`
  return [`### ${title}`, '', line(columns), rule, ...rows.map(line)].join('\n')
}
