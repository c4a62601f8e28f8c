// What was measured, as tables for people: Markdown, as the paper has them, and aligned for a
// terminal. Medians over the rounds; a ratio is the median of the ratios within each round, with
// the least and the most.
import type { Throughput } from './parts/throughput.ts'
import type { Results } from './parts.ts'
import { ceiling, service } from './servers.ts'
import { median, ratiosWithinRounds } from './statistics.ts'

/** A heading and a table under it, the first column to the left, the others to the right. */
interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const summaryConnections = 64

export function report(results: Results): string {
  const { throughput, latency, growth, postgres } = results
  const tables: Table[] = [
    { title: 'Machine', columns: ['', ''], rows: Object.entries(results.machine) },
  ]
  if (throughput) tables.push(...throughputTables(throughput, ceiling.name, ''))
  if (latency) {
    const rates = [...new Set(latency.map(({ ratePerSecond }) => ratePerSecond))]
    tables.push({
      title: 'Mix at a constant rate, p50 / p99 / p99.9 in ms',
      columns: ['', ...rates.map((rate) => `${whole(rate)}/s`)],
      rows: byContender(latency).map(([contender, measured]) => [
        contender,
        ...rates.map((rate) => {
          const at = measured.filter(({ ratePerSecond }) => ratePerSecond === rate)
          const keys = ['p50Ms', 'p99Ms', 'p999Ms'] as const
          if (at.length === 0) return 'behind'
          return keys.map((key) => middle(at, (one) => one[key], 2)).join(' / ')
        }),
      ]),
    })
  }
  if (results['first-answer'])
    tables.push({
      title: 'From start to first answer',
      columns: ['', 'plants', 'first answer, ms', 'idle, MiB'],
      rows: results['first-answer'].map(({ contender, plants, firstAnswerMs, idleMiB }) => [
        contender,
        ...[plants, firstAnswerMs, idleMiB].map(whole),
      ]),
    })
  if (growth) {
    const sizes = [...new Set(growth.map(({ plants }) => plants))]
    const groups = Map.groupBy(
      growth,
      ({ accounts, workload }) =>
        `${workload}, ${whole(accounts)} ${accounts === 1 ? 'account' : 'accounts'}`,
    )
    tables.push({
      title: 'Growth: to a store with 1,000 plants',
      columns: ['', ...sizes.map((size) => `${whole(size)} plants`)],
      rows: [...groups].map(([name, group]) => [
        name,
        ...sizes.map((size) =>
          spread(group.filter(({ plants }) => plants === size).map(({ ratio }) => ratio)),
        ),
      ]),
    })
  }
  if (results['whole-list']) {
    const groups = Map.groupBy(results['whole-list'], ({ reader }) => reader)
    const above = ['above fresh, most MiB', 'above used, most MiB']
    tables.push({
      title: 'A list of 1,000,000 plants',
      columns: ['reader', 'MB/s', ...above, 'others: p50 ms', 'p99 ms', 'most ms'],
      rows: [...groups].map(([reader, measured]) => [
        reader,
        middle(measured, ({ megabytesPerSecond }) => megabytesPerSecond, 0),
        most(measured, ({ peakAboveFreshMiB }) => peakAboveFreshMiB),
        most(measured, ({ peakAboveUsedMiB }) => peakAboveUsedMiB),
        middle(measured, ({ others }) => others.p50Ms, 2),
        middle(measured, ({ others }) => others.p99Ms, 2),
        most(measured, ({ others }) => others.maxMs),
      ]),
    })
  }
  if (results['slow-disk']) {
    const { throughput: slow, lists } = results['slow-disk']
    const groups = Map.groupBy(lists, ({ createsPerSecond }) =>
      createsPerSecond === 0 ? 'alone' : 'beside creates',
    )
    tables.push(...throughputTables(slow, service.name, ', a sync of 5 ms'), {
      title: 'Lists of 20, a sync of 5 ms',
      columns: ['', 'creates per second', 'p50 ms', 'p99 ms', 'p99.9 ms'],
      rows: [...groups].map(([name, of]) => [
        name,
        middle(of, ({ createsPerSecond }) => createsPerSecond, 0),
        middle(of, ({ latency }) => latency.p50Ms, 2),
        middle(of, ({ latency }) => latency.p99Ms, 2),
        middle(of, ({ latency }) => latency.p999Ms, 2),
      ]),
    })
  }
  if (postgres) {
    const ofService = postgres.filter(({ contender }) => contender === service.name)
    tables.push({
      title: 'Creates on PostgreSQL, 64 connections',
      columns: ['', 'per second', `${service.name} to it`],
      rows: byContender(postgres).map(([contender, measured]) => [
        contender,
        middle(measured, ({ requestsPerSecond }) => requestsPerSecond, 0),
        spread(ratiosWithinRounds(ofService, measured)),
      ]),
    })
  }
  return tables.map(tableText).join('\n\n')
}

/** First all workloads side by side, then each by itself. */
function throughputTables(
  results: readonly Throughput[],
  reference: string,
  condition: string,
): readonly Table[] {
  const shown = results.filter(({ connections }) => connections === summaryConnections)
  const workloads = [...new Set(shown.map(({ workload }) => workload))]
  const summary = {
    title: `Per second from ${summaryConnections} connections${condition}, and as a part of ${reference}`,
    columns: ['', ...workloads],
    rows: byContender(shown).map(([name, measured]) => [
      name,
      ...workloads.map((workload) => {
        const of = measured.filter((one) => one.workload === workload)
        const references = shown.filter(
          (one) => one.workload === workload && one.contender === reference,
        )
        const rate = middle(of, ({ requestsPerSecond }) => requestsPerSecond, 0)
        const ratio = median(ratiosWithinRounds(of, references)).toFixed(3)
        return of.length === 0 ? '' : `${rate} (${ratio})`
      }),
    ]),
  }
  const groups = Map.groupBy(
    results,
    ({ workload, connections }) => `${workload}, ${connections} connections${condition}`,
  )
  const measures = ['p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs', 'busy', 'MiB']
  const each = [...groups].map(([title, group]) => {
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
    const columns = ['', 'per second', `of ${reference}`, `${service.name} to it`, ...measures]
    return { title, columns, rows }
  })
  return [summary, ...each]
}

/** Their names, the service's first. */
export function contenders(rows: readonly { readonly contender: string }[]): readonly string[] {
  const names = [...new Set(rows.map(({ contender }) => contender))]
  return names.sort((one, other) => Number(other === service.name) - Number(one === service.name))
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

/** The median of a number in each of several rows; empty if they have none. */
function middle<Row>(
  rows: readonly Row[],
  pick: (row: Row) => number | undefined,
  digits: number,
): string {
  const values = rows.map(pick).filter((value) => value !== undefined)
  if (values.length === 0) return ''
  return digits === 0 ? whole(median(values)) : median(values).toFixed(digits)
}

/** Of a number that must stay below a bound: the worst of the rounds. */
function most<Row>(rows: readonly Row[], pick: (row: Row) => number): string {
  return Math.max(...rows.map(pick)).toFixed(1)
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}

export function tableText({ title, columns, rows }: Table): string {
  const rule = columns.map((_, column) => (column === 0 ? '-' : ':'))
  const widths = columns.map((_, column) =>
    Math.max(4, ...[columns, ...rows].map((cells) => cells[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[], filler = ' '): string => {
    const padded = widths.map((width, column) =>
      column === 0
        ? (cells[0] ?? '').padEnd(width, filler)
        : (cells[column] ?? '').padStart(width, filler),
    )
    return `| ${padded.join(' | ')} |`
  }
  return [`### ${title}`, '', line(columns), line(rule, '-'), ...rows.map((row) => line(row))].join(
    '\n',
  )
}
