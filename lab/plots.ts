// Which plots the paper has, made from what was measured.
import type { Growth } from './parts/growth.ts'
import type { Latency } from './parts/latency.ts'
import { storageName, type Throughput } from './parts/throughput.ts'
import type { Results } from './parts.ts'
import { type Bar, barPlot, type LineSeries, linePlot } from './plot.ts'
import { contenders } from './report.ts'
import { ceiling } from './servers.ts'
import { median, ratiosWithinRounds } from './statistics.ts'

const connectionsShown = 64

/** SVG by the name of its file; only of the parts that were measured. */
export function plots({ throughput, latency, growth }: Results): Readonly<Record<string, string>> {
  return {
    ...(throughput && {
      throughput: throughputPlot(throughput),
      'connections-creates': connectionsPlot(throughput, 'creates'),
      'connections-lists': connectionsPlot(throughput, 'lists of 20'),
    }),
    ...(latency && { latency: latencyPlot(latency) }),
    ...(growth && { growth: growthPlot(growth) }),
  }
}

/** The service comes first, and so stands out. */
function peersAndService(rows: readonly Throughput[]): readonly string[] {
  return contenders(rows).filter((name) => name !== ceiling.name && name !== storageName)
}

function throughputPlot(rows: readonly Throughput[]): string {
  const shown = rows.filter(({ connections }) => connections === connectionsShown)
  const workloads = [...new Set(shown.map(({ workload }) => workload))]
  const groups = workloads.map((workload) => ({
    name: workload,
    bars: peersAndService(shown).map((name) => bar(name, ratios(shown, workload, name))),
  }))
  const title = `Requests per second from ${connectionsShown} connections, as a part of the ceiling`
  return barPlot({ title, valueLabel: 'part of the ceiling', groups })
}

function ratios(rows: readonly Throughput[], workload: string, name: string): readonly number[] {
  const of = (contender: string): readonly Throughput[] =>
    rows.filter((row) => row.workload === workload && row.contender === contender)
  return ratiosWithinRounds(of(name), of(ceiling.name))
}

function bar(name: string, values: readonly number[]): Bar {
  return { name, value: median(values), low: Math.min(...values), high: Math.max(...values) }
}

function connectionsPlot(rows: readonly Throughput[], workload: string): string {
  const shown = rows.filter((row) => row.workload === workload)
  const series = peersAndService(shown).map((name) =>
    lineOf(
      name,
      shown.filter(({ contender }) => contender === name),
      ({ connections }) => connections,
      ({ requestsPerSecond }) => requestsPerSecond,
    ),
  )
  const title = `${workload[0]?.toUpperCase()}${workload.slice(1)} per second over connections`
  return linePlot({
    title,
    xLabel: 'connections',
    yLabel: 'per second',
    series,
    xScale: 'log',
    yScale: 'log',
  })
}

function latencyPlot(rows: readonly Latency[]): string {
  const series = contenders(rows).map((name) =>
    lineOf(
      name,
      rows.filter(({ contender }) => contender === name),
      ({ ratePerSecond }) => ratePerSecond,
      ({ p99Ms }) => p99Ms,
    ),
  )
  const title = 'Latency at constant rates: the mix, as long as a contender keeps up'
  return linePlot({
    title,
    xLabel: 'requests per second',
    yLabel: 'p99 in ms',
    series,
    xScale: 'log',
    yScale: 'log',
  })
}

function growthPlot(rows: readonly Growth[]): string {
  const groups = Map.groupBy(
    rows,
    ({ workload, accounts }) =>
      `${workload}, ${accounts === 1 ? 'one account' : '100,000 accounts'}`,
  )
  const series = [...groups].map(([name, group]) =>
    lineOf(
      name,
      group,
      ({ plants }) => plants,
      ({ ratio }) => ratio,
    ),
  )
  const title = 'What more plants cost: requests per second, to those with 1,000 plants'
  return linePlot({
    title,
    xLabel: 'plants in the store',
    yLabel: 'ratio',
    series,
    xScale: 'log',
    yScale: 'linear',
  })
}

/** Medians of the rounds, from the least to the greatest x. */
function lineOf<Row>(
  name: string,
  rows: readonly Row[],
  x: (row: Row) => number,
  y: (row: Row) => number,
): LineSeries {
  const points = [...Map.groupBy(rows, x)].map(([at, group]) => [at, median(group.map(y))] as const)
  return { name, points: points.sort(([one], [other]) => one - other) }
}
