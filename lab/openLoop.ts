// Loads a server at a constant rate: an open loop, in which requests are due at times that no
// answer delays. A latency counts from the time at which its request was due, so that one that had
// to wait for a slow answer before it is not left out (coordinated omission).
//
// openLoop starts this file as a process of its own and hands it an Order as JSON; it prints its
// Outcomes.
import type { Socket } from 'bun'
import { loaderCore, runPinned } from './programs.ts'
import { bun } from './servers.ts'
import { requestParts, stepAt, type Workload } from './workloads.ts'

/** Requests of one kind at a constant rate. */
export interface Stream {
  readonly name: string
  readonly workload: Workload
  readonly base: number
  readonly connections: number
  readonly ratePerSecond: number
}

export interface Order {
  readonly url: string
  readonly token: string
  readonly seconds: number
  readonly streams: readonly Stream[]
}

export interface Outcome {
  readonly name: string
  /** Answers that were no success, and connections that broke. */
  readonly failed: number
  /** Less than the rate that was asked for if the server did not keep up. */
  readonly answeredPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
}

/** Runs this file as a program of its own. Rejects if any answer was no success. */
export async function openLoop(order: Order): Promise<readonly Outcome[]> {
  const outcomes = JSON.parse(
    await runPinned([bun, import.meta.path, JSON.stringify(order)], loaderCore),
  ) as readonly Outcome[]
  const bad = outcomes.find(({ failed }) => failed > 0)
  if (bad !== undefined)
    throw new Error(`${bad.failed} answers to ${bad.name} were no success; nothing was measured.`)
  return outcomes
}

interface Connection {
  readonly socket: Socket<Connection | undefined>
  dueMs: number
  /** What is left of the answer's body, or -1 while its head is not complete. */
  bodyLeft: number
  head: string
}

/** What came before is not counted: connections are young, code is not compiled. */
const warmUpMs = 500
/** How long answers that are still missing at the end are waited for. */
const lastAnswersMs = 10_000
const timerLateMs = 2

/** The requests of one stream, and the connections that carry them, each one at a time. */
class Runner {
  readonly #stream: Stream
  readonly #url: URL
  readonly #token: string
  readonly #latenciesMs: number[] = []
  readonly #free: Connection[] = []
  #startMs = 0
  #endMs = 0
  #sent = 0
  #answered = 0
  #answeredInTime = 0
  #failed = 0

  constructor(stream: Stream, { url, token }: Order) {
    this.#stream = stream
    this.#url = new URL(url)
    this.#token = token
  }

  async connect(): Promise<void> {
    const { hostname, port } = this.#url
    for (let connection = 0; connection < this.#stream.connections; connection += 1) {
      const socket = await Bun.connect<Connection | undefined>({
        hostname,
        port: Number(port),
        socket: {
          data: (from, bytes) => this.#read(from.data as Connection, bytes as Buffer),
          close: () => {
            this.#failed += 1
          },
        },
      })
      const made = { socket, dueMs: 0, bodyLeft: -1, head: '' }
      socket.data = made
      this.#free.push(made)
    }
  }

  begin(startMs: number, endMs: number): void {
    this.#startMs = startMs
    this.#endMs = endMs
  }

  /** Sends what is due, as far as there are connections for it. */
  sendDue(nowMs: number): void {
    for (;;) {
      const dueMs = this.nextDueMs
      if (dueMs > nowMs || dueMs >= this.#endMs) return
      const connection = this.#free.pop()
      if (connection === undefined) return
      connection.dueMs = dueMs
      const request = this.#request(this.#sent)
      if (connection.socket.write(request) !== request.length) this.#failed += 1
      this.#sent += 1
    }
  }

  get nextDueMs(): number {
    return this.#startMs + (this.#sent * 1000) / this.#stream.ratePerSecond
  }

  /** Everything is answered, or something has failed, so that nothing more need be measured. */
  get isDone(): boolean {
    return this.#failed > 0 || (this.nextDueMs >= this.#endMs && this.#answered === this.#sent)
  }

  outcome(seconds: number): Outcome {
    const sorted = Float64Array.from(this.#latenciesMs).sort()
    const at = (share: number): number =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
    return {
      name: this.#stream.name,
      failed: this.#failed + this.#sent - this.#answered,
      answeredPerSecond: this.#answeredInTime / (seconds - warmUpMs / 1000),
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      p999Ms: at(0.999),
      maxMs: at(1),
    }
  }

  #request(n: number): string {
    const { step, number } = stepAt(this.#stream.workload, n)
    const parts = requestParts(step, this.#url.host, this.#token)
    return parts.join(String(this.#stream.base + number))
  }

  #read(connection: Connection, bytes: Buffer): void {
    if (connection.bodyLeft >= 0) connection.bodyLeft -= bytes.length
    else {
      connection.head += bytes.toString('latin1')
      const end = connection.head.indexOf('\r\n\r\n')
      if (end === -1) return
      const head = connection.head.slice(0, end)
      if (!/^HTTP\/1\.1 2/.test(head)) this.#failed += 1
      // An answer in chunks has no length; none of those that are asked for comes in chunks.
      const length = /^HTTP\/1\.1 204/.test(head)
        ? 0
        : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1])
      connection.bodyLeft = length - (connection.head.length - end - 4)
    }
    if (connection.bodyLeft === 0) this.#finish(connection)
    else if (!(connection.bodyLeft > 0)) this.#failed += 1
  }

  #finish(connection: Connection): void {
    this.#answered += 1
    const nowMs = performance.now()
    if (connection.dueMs - this.#startMs >= warmUpMs) {
      this.#latenciesMs.push(nowMs - connection.dueMs)
      if (nowMs < this.#endMs) this.#answeredInTime += 1
    }
    connection.bodyLeft = -1
    connection.head = ''
    this.#free.push(connection)
  }
}

async function generate(order: Order): Promise<readonly Outcome[]> {
  const runners = order.streams.map((stream) => new Runner(stream, order))
  for (const runner of runners) await runner.connect()
  const startMs = performance.now()
  const endMs = startMs + order.seconds * 1000
  for (const runner of runners) runner.begin(startMs, endMs)
  for (let nowMs = startMs; nowMs < endMs; nowMs = performance.now()) {
    for (const runner of runners) runner.sendDue(nowMs)
    const idleMs = Math.min(...runners.map(({ nextDueMs }) => nextDueMs)) - performance.now()
    // A timer comes up to a millisecond late, so what is due earlier than that is waited for awake.
    if (idleMs > timerLateMs) await Bun.sleep(Math.floor(idleMs - timerLateMs))
    else await new Promise((resolve) => setImmediate(resolve))
  }
  // What was due before the end and found no connection is sent late, and so counts as late.
  while (!runners.every(({ isDone }) => isDone) && performance.now() < endMs + lastAnswersMs) {
    for (const runner of runners) runner.sendDue(endMs)
    await Bun.sleep(1)
  }
  return runners.map((runner) => runner.outcome(order.seconds))
}

if (import.meta.main) {
  console.log(JSON.stringify(await generate(JSON.parse(process.argv[2] ?? '') as Order)))
  process.exit(0)
}
