// The plots of the papers, as SVG: for light and for dark pages, and for every kind of colour
// vision.

type ScaleKind = 'linear' | 'log'

export interface LineSeries {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface LinePlot {
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  /** At most eight; the first stands out. */
  readonly series: readonly LineSeries[]
  readonly xScale: ScaleKind
  readonly yScale: ScaleKind
}

export interface Bar {
  readonly name: string
  readonly value: number
  /** From low to high is the spread, drawn as a whisker. */
  readonly low: number
  readonly high: number
}

export interface BarGroup {
  readonly name: string
  readonly bars: readonly Bar[]
}

export interface BarPlot {
  readonly title: string
  readonly valueLabel: string
  /** With at most eight different names of bars; the first stands out. */
  readonly groups: readonly BarGroup[]
}

interface Axis {
  readonly ticks: readonly number[]
  /** How far along the axis a value lies, from 0 to 1. */
  readonly share: (value: number) => number
}

// Each colour keeps a contrast of 3:1 to its page, and its distance to the others without red,
// green or blue cones. A marker is drawn around the point that was moved to.
const looks = [
  { light: '#b8380a', dark: '#eb7629', marker: 'm-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z' },
  { light: '#263d8b', dark: '#1969b5', marker: 'm-4-4h8v8h-8z' },
  { light: '#007667', dark: '#16b08e', marker: 'm0-5.5l5 9h-10z' },
  { light: '#de48b4', dark: '#bf7ce9', marker: 'm0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z' },
  { light: '#1892f2', dark: '#7bd2ff', marker: 'm0 5.5l5-9h-10z' },
  {
    light: '#1f2328',
    dark: '#f0f6fc',
    marker: 'm-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z',
  },
  {
    light: '#a58727',
    dark: '#dfc02e',
    marker: 'm0-2l3-3l2 2l-3 3l3 3l-2 2l-3-3l-3 3l-2-2l3-3l-3-3l2-2z',
  },
  { light: '#6a3341', dark: '#a66159', marker: 'm-2-6h4v12h-4z' },
] as const

const style = `
svg { --text: #1f2328; --quiet: #59636e; --grid: #d1d9e0; --paper: #ffffff; ${inks('light')} }
@media (prefers-color-scheme: dark) {
svg { --text: #f0f6fc; --quiet: #9198a1; --grid: #343b44; --paper: #0d1117; ${inks('dark')} }
}
${looks.map((_, index) => `.look${index} { color: var(--ink${index}) }`).join('\n')}
text { font: 13px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif; fill: var(--text) }
.quiet { font-size: 12px; fill: var(--quiet) }
.strong, .look0 { font-weight: 600 }
.title { font-size: 16px; font-weight: 600 }
.middle { text-anchor: middle }
.end { text-anchor: end }
.grid { stroke: var(--grid) }
.axis { stroke: var(--quiet) }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round }
.line.look0 { stroke-width: 4 }
.bar, .marker { fill: currentColor }
.marker, .value { stroke: var(--paper); stroke-width: 3; stroke-linejoin: round; paint-order: stroke }
.halo { fill: none; stroke: var(--paper); stroke-width: 3.5 }
.whisker { fill: none; stroke: var(--text); stroke-width: 1.5 }
`

function inks(page: 'light' | 'dark'): string {
  return looks.map((look, index) => `--ink${index}: ${look[page]};`).join(' ')
}

const width = 760
const margin = 8
const rowHeight = 20
const plotHeight = 340
/**
 * More than an average letter of the usual system fonts takes: room is reserved without knowing the
 * font.
 */
const letterWidth = 7.6

export function linePlot({ title, xLabel, yLabel, series, xScale, yScale }: LinePlot): string {
  const names = series.map(({ name }) => name)
  const xs = series.flatMap(({ points }) => points.map(([x]) => x))
  const ys = series.flatMap(({ points }) => points.map(([, y]) => y))
  const [xAxis, yAxis] = [axisOf(xScale, xs), axisOf(yScale, ys)]
  const [left, right] = [margin + widthOf(yAxis.ticks.map(short)), width - 24]
  const keys = legend(names)
  const top = keys.bottom + 32
  const bottom = top + plotHeight
  const across = (x: number): number => left + xAxis.share(x) * (right - left)
  const down = (y: number): number => bottom - yAxis.share(y) * plotHeight
  const places = series.map(({ points }) => points.map(([x, y]) => at(across(x), down(y))))
  const lines = places.map((ofSeries, index) => line(index, ofSeries.join('L'), ofSeries))
  return drawing(title, `${yLabel} by ${xLabel}, of ${names.join('; ')}`, bottom + 48, [
    ...keys.parts,
    text(margin, top - 16, 'quiet', yLabel),
    ...yAxis.ticks.map((tick) => path('grid', `${at(left, down(tick))}H${right}`)),
    ...yAxis.ticks.map((tick) => text(left - 8, down(tick) + 4, 'quiet end', short(tick))),
    ...xAxis.ticks.map((tick) => path('grid', `${at(across(tick), top)}V${bottom}`)),
    ...xAxis.ticks.map((tick) => text(across(tick), bottom + 18, 'quiet middle', short(tick))),
    path('axis', `${at(left, bottom)}H${right}`),
    text((left + right) / 2, bottom + 40, 'quiet middle', xLabel),
    // Backwards, so that the first lies above the others.
    ...lines.reverse(),
  ])
}

function legend(names: readonly string[]): { parts: string[]; bottom: number } {
  const cellWidth = widthOf(names) + 40
  const columns = Math.max(1, Math.floor((width - margin) / cellWidth))
  const parts = names.flatMap((name, index) => {
    const [x, y] = [
      margin + (index % columns) * cellWidth,
      48 + Math.floor(index / columns) * rowHeight,
    ]
    return [
      line(index, `${at(x, y)}h28`, [at(x + 14, y)]),
      text(x + 36, y + 4.5, classOf(index), name),
    ]
  })
  return { parts, bottom: 44 + Math.ceil(names.length / columns) * rowHeight }
}

function line(index: number, data: string, places: readonly string[]): string {
  const markers = places.map((place) => `${place}${looks[index]?.marker}`)
  return `${path(`line ${classOf(index)}`, data)}\n${path(`marker ${classOf(index)}`, markers.join('M'))}`
}

export function barPlot({ title, valueLabel, groups }: BarPlot): string {
  const bars = groups.flatMap((group) => group.bars)
  const names = [...new Set(bars.map(({ name }) => name))]
  const values = bars.flatMap(({ value, low, high }) => [value, low, high])
  const axis = axisOf('linear', values)
  const [left, right] = [margin + widthOf(names), width - margin - widthOf(values.map(full))]
  const across = (value: number): number => rounded(left + axis.share(value) * (right - left))
  const parts: string[] = []
  let bottom = 32
  for (const group of groups) {
    const top = bottom + 30
    bottom = top + group.bars.length * rowHeight
    parts.push(text(across(0), top - 8, 'strong', group.name))
    parts.push(...axis.ticks.map((tick) => path('grid', `${at(across(tick), top)}V${bottom}`)))
    parts.push(
      ...group.bars.map((bar, row) =>
        barRow(bar, names.indexOf(bar.name), top + (row + 0.5) * rowHeight, across),
      ),
    )
    parts.push(path('axis', `${at(across(0), top)}V${bottom}`))
  }
  return drawing(
    title,
    `${valueLabel}, of ${names.join('; ')}, for ${groups.map(({ name }) => name).join('; ')}`,
    bottom + 48,
    [
      ...parts,
      ...axis.ticks.map((tick) => text(across(tick), bottom + 18, 'quiet middle', short(tick))),
      text((left + right) / 2, bottom + 40, 'quiet middle', valueLabel),
    ],
  )
}

function barRow(
  { name, value, low, high }: Bar,
  index: number,
  y: number,
  across: (value: number) => number,
): string {
  const [start, end, from, to] = [across(0), across(value), across(low), across(high)]
  const whisker = `${at(from, y)}H${to}M${at(from, y - 4)}v8M${at(to, y - 4)}v8`
  return [
    text(start - 8, y + 4.5, `end ${classOf(index)}`, name),
    path(`bar ${classOf(index)}`, `${at(start, y - 7)}H${end}v14H${start}z`),
    ...(low < high ? [path('halo', whisker), path('whisker', whisker)] : []),
    text(Math.max(end, to) + 8, y + 4.5, `value ${classOf(index)}`, full(value)),
  ].join('\n')
}

function classOf(index: number): string {
  if (index >= looks.length)
    throw new RangeError(`A plot tells at most ${looks.length} names apart.`)
  return `look${index}`
}

function axisOf(kind: ScaleKind, values: readonly number[]): Axis {
  const misfit = values.find((value) => !Number.isFinite(value) || (kind === 'log' && value <= 0))
  if (misfit !== undefined) throw new RangeError(`A ${kind} scale has no place for ${misfit}.`)
  return kind === 'log' ? logAxis(values) : linearAxis(values)
}

/** Begins at zero: a cut axis makes small differences look large. */
function linearAxis(values: readonly number[]): Axis {
  const low = Math.min(0, ...values)
  const high = values.some((value) => value !== 0) ? Math.max(0, ...values) : 1
  const least = (high - low) / 6
  const decade = 10 ** Math.floor(Math.log10(least))
  const step = decade * ([1, 2, 2.5, 5].find((factor) => factor * decade >= least) ?? 10)
  const first = Math.floor(low / step)
  const count = Math.ceil(high / step) - first
  const ticks = Array.from({ length: count + 1 }, (_, index) => (first + index) * step)
  return { ticks, share: (value) => (value / step - first) / count }
}

/** Reaches from a 1, 2 or 5 to a 1, 2 or 5; over many decades only the 1s are ticks. */
function logAxis(values: readonly number[]): Axis {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const decades: number[] = []
  for (let decade = Math.floor(Math.log10(least)) - 1; decade <= Math.log10(most) + 1; decade += 1)
    decades.push(decade)
  const steps = decades.flatMap((decade) =>
    [1, 2, 5].map((factor) => Number(`${factor}e${decade}`)),
  )
  const [first, last] = [
    steps.findLastIndex((step) => step <= least),
    steps.findIndex((step) => step >= most),
  ]
  const alone = first === last ? 1 : 0
  const reach = steps.slice(first - alone, last + alone + 1)
  const [low, high] = [Math.min(...reach), Math.max(...reach)]
  const ticks =
    reach.length > 12 ? reach.filter((step) => Number.isInteger(Math.log10(step))) : reach
  return { ticks, share: (value) => Math.log(value / low) / Math.log(high / low) }
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 6 })

/** 5k, 2.5M */
function short(value: number): string {
  return compact.format(value).replace('K', 'k')
}

/** 48,213 or 0.832 */
function full(value: number): string {
  return value.toLocaleString(
    'en',
    value >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 },
  )
}

function drawing(
  title: string,
  description: string,
  height: number,
  parts: readonly string[],
): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">${Bun.escapeHTML(title)}</title>
<desc id="description">${Bun.escapeHTML(description)}</desc>
<style>${style}</style>
${[text(margin, 22, 'title', title), ...parts].join('\n')}
</svg>
`
}

function text(x: number, y: number, classes: string, content: string): string {
  return `<text class="${classes}" x="${rounded(x)}" y="${rounded(y)}">${Bun.escapeHTML(content)}</text>`
}

/** From the point that the data begin with. */
function path(classes: string, data: string): string {
  return `<path class="${classes}" d="${data && `M${data}`}"/>`
}

function at(x: number, y: number): string {
  return `${rounded(x)} ${rounded(y)}`
}

/** To a tenth, so that files of two runs differ only where their numbers do. */
function rounded(coordinate: number): number {
  return Math.round(coordinate * 10) / 10
}

function widthOf(texts: readonly string[]): number {
  return Math.ceil(Math.max(0, ...texts.map(({ length }) => length)) * letterWidth) + 20
}
