// The plots of the paper, as SVG, made from what was measured: for light and for dark pages, and for
// every kind of colour vision.
import { parse, View } from 'vega'
import { type Config, compile, type TopLevelSpec } from 'vega-lite'
import { storageName } from './parts/throughput.ts'
import type { Results } from './parts.ts'
import { contenders } from './report.ts'
import { ceiling } from './servers.ts'
import { median, ratiosWithinRounds } from './statistics.ts'

// Each ink keeps a contrast of 3:1 to its page, and its distance to the others for eyes without
// red, green or blue cones.
const style = `
svg { --text: #1f2328; --quiet: #59636e; --grid: #d1d9e0; --paper: #ffffff;
  --ink0: #b8380a; --ink1: #263d8b; --ink2: #007667; --ink3: #de48b4; --ink4: #1892f2 }
@media (prefers-color-scheme: dark) {
  svg { --text: #f0f6fc; --quiet: #9198a1; --grid: #343b44; --paper: #0d1117;
    --ink0: #eb7629; --ink1: #1969b5; --ink2: #16b08e; --ink3: #bf7ce9; --ink4: #7bd2ff }
}`
const inks = [0, 1, 2, 3, 4].map((index) => `var(--ink${index})`)
const [text, quiet, grid, paper] = ['var(--text)', 'var(--quiet)', 'var(--grid)', 'var(--paper)']
/** 0.5, 20, 5k, 10M */
const short = "datum.value < 1000 ? datum.value : format(datum.value, '~s')"

const config: Config = {
  font: "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif",
  background: 'transparent',
  view: { stroke: null },
  title: { anchor: 'start', frame: 'bounds', fontSize: 14, color: text, offset: 12 },
  axis: {
    labelColor: quiet,
    labelFontSize: 12,
    labelPadding: 6,
    labelFlush: false,
    titleColor: quiet,
    titleFontSize: 12,
    titleFontWeight: 'normal',
    gridColor: grid,
    domainColor: quiet,
    ticks: false,
  },
  legend: {
    orient: 'top',
    columns: 2,
    columnPadding: 24,
    offset: 28,
    symbolSize: 90,
    title: null,
    labelColor: text,
    labelFontSize: 12,
    labelLimit: 0,
  },
  header: { labelColor: text, labelFontSize: 13, labelFontWeight: 'bold', title: null },
}

/** SVG by the name of its file; only of the parts that were measured. */
export async function plots(results: Results): Promise<Readonly<Record<string, string>>> {
  const { throughput = [], latency = [], growth = [] } = results
  const fromConnections = throughput
    .filter(({ contender }) => contender !== ceiling.name && contender !== storageName)
    .map((row) => ({ ...row, name: row.contender, x: row.connections, y: row.requestsPerSecond }))
  const growthRows = growth.map(({ workload, accounts, plants, ratio }) => ({
    name: `${workload}, ${accounts === 1 ? 'one account' : '100,000 accounts'}`,
    x: plants,
    y: ratio,
  }))
  const drawn: Record<string, TopLevelSpec | undefined> = {
    throughput: bars(throughput),
    'connections-creates': lines(
      'Creates per second over connections',
      fromConnections.filter(({ workload }) => workload === 'creates'),
      { x: 'connections', y: 'per second', scale: 'log' },
    ),
    'connections-lists': lines(
      'Lists of 20 per second over connections',
      fromConnections.filter(({ workload }) => workload === 'lists of 20'),
      { x: 'connections', y: 'per second', scale: 'log' },
    ),
    latency: lines(
      'Latency at constant rates: the mix, as long as a contender keeps up',
      latency.map((row) => ({ name: row.contender, x: row.ratePerSecond, y: row.p99Ms })),
      { x: 'requests per second', y: 'p99 in ms', scale: 'log' },
    ),
    growth: lines(
      'What more plants cost: requests per second, to those with 1,000 plants',
      growthRows,
      { x: 'plants in the store', y: 'ratio', scale: 'linear' },
    ),
  }
  const svgs: Record<string, string> = {}
  for (const [file, spec] of Object.entries(drawn)) {
    if (spec === undefined) continue
    const view = new View(parse(compile(spec, { config }).spec), { renderer: 'none' })
    const head = `$&<title>${spec.title}</title><style>${style}</style>`
    svgs[file] = `${(await view.toSVG()).replace(/<svg[^>]*>/, head)}\n`
  }
  return svgs
}

/** A line for each name, through the medians of the rounds; the first name stands out. */
function lines(
  title: string,
  rows: readonly { readonly name: string; readonly x: number; readonly y: number }[],
  axes: { readonly x: string; readonly y: string; readonly scale: 'log' | 'linear' },
): TopLevelSpec | undefined {
  if (rows.length === 0) return undefined
  const names = contenders(rows.map(({ name }) => ({ contender: name })))
  const ys = rows.map(({ y }) => y)
  const [low, high] = [Math.min(...ys), Math.max(...ys)]
  const steps = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((power) =>
    [1, 2, 5].map((digit) => Number(`${digit}e${power}`)),
  )
  /** From the last step below all values to the first one above them. */
  const reach = steps.filter((_, n) => (steps[n + 1] ?? low) > low && (steps[n - 1] ?? high) < high)
  const domain = [reach[0] ?? low, reach.at(-1) ?? high]
  const series = { field: 'name', type: 'nominal', legend: { title: null } } as const
  return {
    title,
    width: 640,
    height: 340,
    // Backwards, so that the first lies above the others.
    data: { values: [...names].reverse().flatMap((of) => rows.filter(({ name }) => name === of)) },
    transform: [{ aggregate: [{ op: 'median', field: 'y', as: 'y' }], groupby: ['name', 'x'] }],
    encoding: {
      x: {
        field: 'x',
        type: 'quantitative',
        scale: { type: 'log', nice: false },
        axis: { title: axes.x, values: [...new Set(rows.map(({ x }) => x))], labelExpr: short },
      },
      y: {
        field: 'y',
        type: 'quantitative',
        scale: axes.scale === 'log' ? { type: 'log', domain } : { type: 'linear' },
        axis: {
          title: axes.y,
          labelExpr: short,
          titleAngle: 0,
          titleAlign: 'left',
          titleAnchor: 'end',
          titleX: 0,
          titleY: -12,
          ...(axes.scale === 'log' && { values: reach }),
        },
      },
      color: { ...series, scale: { domain: [...names], range: inks } },
    },
    layer: [
      {
        mark: 'line',
        encoding: {
          strokeWidth: {
            condition: { test: { field: 'name', equal: names[0] ?? '' }, value: 4 },
            value: 2,
          },
        },
      },
      {
        mark: { type: 'point', filled: true, opacity: 1, size: 110, stroke: paper },
        encoding: { shape: { ...series, scale: { domain: [...names] } } },
      },
    ],
  }
}

/** Each contender's part of the ceiling, by workload; whiskers are the spread of the rounds. */
function bars(throughput: NonNullable<Results['throughput']>): TopLevelSpec | undefined {
  const connectionsShown = 64
  const rows = throughput.filter(({ connections }) => connections === connectionsShown)
  if (rows.length === 0) return undefined
  const names = contenders(rows).filter((name) => name !== ceiling.name && name !== storageName)
  const workloads = [...new Set(rows.map(({ workload }) => workload))]
  const values = workloads.flatMap((workload) => {
    const of = (contender: string) =>
      rows.filter((row) => row.workload === workload && row.contender === contender)
    return names.map((name) => {
      const ratios = ratiosWithinRounds(of(name), of(ceiling.name))
      const [low, high] = [Math.min(...ratios), Math.max(...ratios)]
      return { workload, name, value: median(ratios), low, high }
    })
  })
  const value = { type: 'quantitative', title: 'part of the ceiling' } as const
  const bold = { condition: { test: `datum.value === '${names[0]}'`, value: 'bold' } } as const
  return {
    title: `Requests per second from ${connectionsShown} connections, as a part of the ceiling`,
    data: { values },
    spacing: 12,
    facet: {
      row: {
        field: 'workload',
        type: 'nominal',
        sort: workloads,
        header: { labelOrient: 'top', labelAnchor: 'start', title: null },
      },
    },
    spec: {
      width: 480,
      height: { step: 20 },
      encoding: {
        y: {
          field: 'name',
          type: 'nominal',
          sort: [...names],
          axis: {
            title: null,
            labelColor: text,
            labelFontSize: 13,
            labelLimit: 0,
            maxExtent: 180,
            labelFontWeight: { ...bold, value: 'normal' },
          },
        },
      },
      layer: [
        {
          mark: { type: 'bar', height: 14 },
          encoding: {
            x: { ...value, field: 'value', axis: { format: '~g' } },
            color: {
              field: 'name',
              type: 'nominal',
              legend: null,
              scale: { domain: [...names], range: inks },
            },
          },
        },
        {
          mark: { type: 'errorbar', ticks: { size: 8 }, color: text },
          encoding: { x: { ...value, field: 'low' }, x2: { field: 'high' } },
        },
        {
          mark: { type: 'text', align: 'left', dx: 8, color: text, fontSize: 13 },
          encoding: {
            x: { ...value, field: 'high' },
            text: { field: 'value', type: 'quantitative', format: '.3~r' },
          },
        },
      ],
    },
  }
}
