// What a service measures of itself, in the text format of Prometheus. docs/operations.md says what
// each metric means. Labels come from closed lists: none holds an account, a token or a path.
import { readdir, readFile } from 'node:fs/promises'
import type { Clock } from './clock.ts'
import { refusals as reasons } from './contract/refusals.ts'
import type { Store } from './domain/store.ts'
import type { RequestEntry } from './log.ts'

export class Metrics {
  readonly #clock: Clock
  readonly #startedMs: number
  /** By operation; "none" for requests that mean no operation. */
  readonly #requests = new Map<
    string,
    { readonly byStatus: Map<number | undefined, number>; readonly seconds: Histogram }
  >()
  /** All reasons from the start on: a rate sees the first refusal only if there was a zero before. */
  readonly #refusals = new Map(Object.keys(reasons).map((reason) => [reason, 0]))
  readonly #commitSeconds = new Histogram(secondsBounds)
  readonly #writesPerCommit = new Histogram(writesBounds)

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedMs = clock.wallMs()
  }

  /** Hears of every request that has ended. `status` is absent if nothing was sent. */
  requestEnded({ startedMs, operation = 'none', refusal }: RequestEntry, status?: number): void {
    let requests = this.#requests.get(operation)
    if (requests === undefined) {
      requests = { byStatus: new Map(), seconds: new Histogram(secondsBounds) }
      this.#requests.set(operation, requests)
    }
    requests.byStatus.set(status, (requests.byStatus.get(status) ?? 0) + 1)
    requests.seconds.observe((this.#clock.monotonicMs() - startedMs) / 1000)
    if (refusal !== undefined) this.#refusals.set(refusal, (this.#refusals.get(refusal) ?? 0) + 1)
  }

  /** Hears of every commit of the store. */
  committed(writes: number, tookMs: number): void {
    this.#commitSeconds.observe(tookMs / 1000)
    this.#writesPerCommit.observe(writes)
  }

  /** All metrics as they are now. What is not known is left out. */
  async text(store: Store, connections: number | undefined): Promise<string> {
    const isUp = await store.ready().then(
      () => true,
      () => false,
    )
    const bytes = isUp ? await Promise.try(() => store.bytes()).catch(() => undefined) : undefined
    const requests = [...this.#requests]
    return [
      metric(
        'counter plants_http_requests_total',
        'Requests that have ended.',
        requests.flatMap(([operation, { byStatus }]) =>
          [...byStatus].map(
            ([status = 'none', count]): Sample => [
              `{operation="${operation}",status="${status}"}`,
              count,
            ],
          ),
        ),
      ),
      metric(
        'histogram plants_http_request_duration_seconds',
        'Time from the head of a request to the end of its answer.',
        requests.flatMap(([operation, { seconds }]) => seconds.samples(`operation="${operation}"`)),
      ),
      metric(
        'counter plants_refusals_total',
        'Requests that were refused.',
        [...this.#refusals].map(([reason, count]): Sample => [`{reason="${reason}"}`, count]),
      ),
      metric('gauge plants_connections', 'Connections that clients hold.', connections),
      metric('gauge plants_store_up', 'Whether the store can be read and takes writes.', +isUp),
      metric('gauge plants_store_bytes', 'Bytes that the store takes on its disk.', bytes),
      metric(
        'gauge plants_store_waiting_writes',
        'Writes that were asked for and are not settled yet.',
        store.waitingWrites(),
      ),
      metric(
        'histogram plants_store_commit_seconds',
        'Time that a commit took.',
        this.#commitSeconds.samples(),
      ),
      metric(
        'histogram plants_store_writes_per_commit',
        'Writes that shared a commit.',
        this.#writesPerCommit.samples(),
      ),
      metric(
        'gauge process_start_time_seconds',
        'Unix time at which the process started.',
        this.#startedMs / 1000,
      ),
      await processFigures(),
    ].join('')
  }
}

/** What follows the name of a metric in a line, and the value. */
type Sample = readonly [rest: string, value: number]

/** Half a millisecond is a read, some seconds are the deadlines of the stores. */
const secondsBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]
/** Up to the most that share a commit. */
const writesBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

/** Counts values by the least bound that they do not exceed. */
class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let place = 0
    while (value > (this.#bounds[place] ?? Number.POSITIVE_INFINITY)) place += 1
    this.#counts[place] = (this.#counts[place] ?? 0) + 1
    this.#sum += value
  }

  samples(label?: string): readonly Sample[] {
    const own = label === undefined ? '' : `{${label}}`
    let count = 0
    const buckets = this.#counts.map((each, place): Sample => {
      count += each
      const bound = `le="${this.#bounds[place] ?? '+Inf'}"`
      return [`_bucket{${label === undefined ? bound : `${label},${bound}`}}`, count]
    })
    return [...buckets, [`_sum${own}`, this.#sum], [`_count${own}`, count]]
  }
}

/** The lines of a metric. A value that is not known has none. */
function metric(
  typeAndName: string,
  help: string,
  values: readonly Sample[] | number | undefined,
): string {
  if (values === undefined) return ''
  const [type, name] = typeAndName.split(' ')
  const samples: readonly Sample[] = typeof values === 'number' ? [['', values]] : values
  const lines = samples.map(([rest, value]) => `${name}${rest} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

/** What Linux tells of this process (man 5 proc), under the usual names. Empty on other systems. */
async function processFigures(): Promise<string> {
  try {
    const [stat, status, limits, descriptors] = await Promise.all([
      readFile('/proc/self/stat', 'latin1'),
      readFile('/proc/self/status', 'latin1'),
      readFile('/proc/self/limits', 'latin1'),
      readdir('/proc/self/fd'),
    ])
    const found = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1])
    // The name of the program, in brackets, may hold anything. After it come 11 fields before these.
    const [, user, system] = /\) (?:\S+ ){11}(\d+) (\d+) /.exec(stat) ?? []
    return [
      metric(
        'counter process_cpu_seconds_total',
        'Processor time that the process has taken.',
        (Number(user) + Number(system)) / ticksPerSecond,
      ),
      metric(
        'gauge process_resident_memory_bytes',
        'Memory that the process holds.',
        found(status, /^VmRSS:\s+(\d+)/m) * 1024,
      ),
      metric(
        'gauge process_virtual_memory_bytes',
        'Addresses that the process has set aside.',
        found(status, /^VmSize:\s+(\d+)/m) * 1024,
      ),
      metric('gauge process_open_fds', 'File descriptors that are open.', descriptors.length),
      metric(
        'gauge process_max_fds',
        'File descriptors that may be open.',
        found(limits, /^Max open files\s+(\d+)/m),
      ),
    ].join('')
  } catch {
    return ''
  }
}

/** How Linux counts processor time for programs, on every machine that the service runs on. */
const ticksPerSecond = 100
