// Clients that create, delete and list, and know of each id what was acknowledged: what a service
// answers while something fails is held against that.
import { type HttpAnswer, HttpConnection } from './httpConnection.ts'

/** What is known of an id: `unknown` after an answer that said so, or none. */
type Known = 'present' | 'absent' | 'unknown'

/** What was found wrong at the end, and what must be: nothing. */
export interface Findings {
  /** Answers that must never be given. */
  readonly wrong: readonly string[]
  /** How many plants a list showed more than once. */
  readonly twice: number
  /** Ids whose create was acknowledged, and whose plants are not there. */
  readonly lost: readonly number[]
  /**
   * Ids whose plants are there, although a delete was acknowledged, or the answer to the create was
   * that nothing was done.
   */
  readonly risen: readonly number[]
  /** Ids that nobody created. */
  readonly invented: readonly number[]
}

export const nothingWrong: Findings = { wrong: [], twice: 0, lost: [], risen: [], invented: [] }

/** No answer may take longer than this: it would be a hang. */
const hangMs = 30_000
const retryPauseMs = 100
/** Lists look for the plants that were acknowledged last. */
const lookedForMax = 1000

export class Load {
  readonly #urls: readonly string[]
  readonly #token: string
  readonly #known = new Map<number, Known>()
  /** Ids whose plants nobody creates or deletes any more. */
  readonly #lookedFor: number[] = []
  readonly #statuses = new Map<string, number>()
  readonly #wrong: string[] = []
  #running: Promise<unknown> | undefined
  #stopped = false
  #lastWriteMs = performance.now()
  #gap = { lengthMs: 0, endMs: 0 }
  #slowestMs = 0

  /** Each client keeps to one of the URLs. */
  constructor(urls: readonly string[], token: string) {
    this.#urls = urls
    this.#token = token
  }

  /** How many writes were acknowledged. */
  get acknowledged(): number {
    return (this.#statuses.get('create 200') ?? 0) + (this.#statuses.get('delete 204') ?? 0)
  }

  /** How often each operation was answered how, such as `create 200`. */
  get statuses(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#statuses].sort())
  }

  /** The longest time without an acknowledged write, and when it ended (performance.now()). */
  get gap(): { readonly lengthMs: number; readonly endMs: number } {
    const endMs = performance.now()
    const lengthMs = endMs - this.#lastWriteMs
    return lengthMs > this.#gap.lengthMs ? { lengthMs, endMs } : this.#gap
  }

  /** The longest time that an answer took. */
  get slowestMs(): number {
    return this.#slowestMs
  }

  /** From now on, `gap` and `slowestMs` are about what is still to come. */
  measureAgain(): void {
    this.#lastWriteMs = performance.now()
    this.#gap = { lengthMs: 0, endMs: 0 }
    this.#slowestMs = 0
  }

  /** `pauseMs` is the time between two requests of a client. */
  start(clients: number, pauseMs = 0): void {
    this.measureAgain()
    this.#running = Promise.all(
      Array.from({ length: clients }, (_, client) => this.#run(client, clients, pauseMs)),
    )
  }

  /** Resolves when every request under way is answered. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  /** Resolves when `count` further writes are acknowledged. */
  async further(count: number, withinMs = 20_000): Promise<void> {
    const goal = this.acknowledged + count
    const endMs = performance.now() + withinMs
    while (this.acknowledged < goal) {
      if (performance.now() > endMs)
        throw new Error(
          `no ${count} writes within ${withinMs} ms: ${JSON.stringify(this.statuses)}`,
        )
      await Bun.sleep(5)
    }
  }

  /** Holds what is there against what was acknowledged, and every answer against what it may be. */
  async findings(): Promise<Findings> {
    const headers = { Authorization: `Bearer ${this.#token}` }
    const response = await fetch(`${this.#urls[0]}/plants`, { headers })
    const plants = (await response.json()) as { name: string }[]
    const present = new Set(plants.map(({ name }) => Number(name)))
    const inState = (wanted: Known): number[] =>
      [...this.#known].flatMap(([id, state]) => (state === wanted ? [id] : []))
    return {
      wrong: this.#wrong,
      twice: plants.length - present.size,
      lost: inState('present').filter((id) => !present.has(id)),
      risen: inState('absent').filter((id) => present.has(id)),
      invented: [...present].filter((id) => !this.#known.has(id)),
    }
  }

  async #run(client: number, clients: number, pauseMs: number): Promise<void> {
    const connection = new HttpConnection(this.#urls[client % this.#urls.length] ?? '', this.#token)
    for (let n = 0; !this.#stopped; n += 1) {
      const id = n * clients + client
      await this.#create(connection, id)
      // A third of the plants is deleted, two creates later; nobody touches the others again.
      if (n % 3 !== 0) this.#lookFor(id)
      if (n % 3 === 2) await this.#delete(connection, (n - 2) * clients + client)
      if (n % 5 === 4) await this.#list(connection)
      if (pauseMs > 0) await Bun.sleep(pauseMs)
    }
    connection.close()
  }

  /** Half of the creates carry a key, so that they may be repeated until they are answered. */
  async #create(connection: HttpConnection, id: number): Promise<void> {
    this.#known.set(id, 'unknown')
    const hasKey = id % 2 === 0
    const headers: Record<string, string> = hasKey ? { 'idempotency-key': `key-${id}` } : {}
    const body = `{"id":${id},"name":"${id}"}`
    let nothingDone = true
    for (;;) {
      const answer = await this.#ask('create', connection, 'POST', '/plants', body, headers)
      if (answer?.status === 200) return void this.#known.set(id, 'present')
      if (answer !== undefined && answer.status !== 503)
        return this.#isWrong('create of a new id', answer)
      nothingDone &&= answer?.body.includes('nothing was done') === true
      if (!hasKey || this.#stopped) break
      await Bun.sleep(retryPauseMs)
    }
    if (nothingDone) this.#known.set(id, 'absent')
  }

  async #delete(connection: HttpConnection, id: number): Promise<void> {
    const before = this.#known.get(id) ?? 'unknown'
    this.#known.set(id, 'unknown')
    const answer = await this.#ask('delete', connection, 'DELETE', `/plants/${id}`)
    if (answer?.status === 204 || (answer?.status === 404 && before !== 'present'))
      this.#known.set(id, 'absent')
    else if (answer?.status === 503) {
      if (answer.body.includes('nothing was done')) this.#known.set(id, before)
    } else if (answer !== undefined) this.#isWrong(`delete of a plant that is ${before}`, answer)
    this.#lookFor(id)
  }

  /** A list that begins at an id shows its plant, or does not, as was acknowledged before. */
  async #list(connection: HttpConnection): Promise<void> {
    const id = this.#lookedFor[Math.floor(Math.random() * this.#lookedFor.length)]
    if (id === undefined) return
    const known = this.#known.get(id)
    const target = `/plants?limit=20&after=${cursorBefore(id)}`
    const answer = await this.#ask('list', connection, 'GET', target)
    if (answer?.status === 200) {
      const shown = answer.body.includes(`{"name":"${id}"}`) ? 'present' : 'absent'
      if (known !== 'unknown' && shown !== known)
        this.#wrong.push(`list: ${id} is ${shown}, and must be ${known}`)
    } else if (answer !== undefined && answer.status !== 503) this.#isWrong('list', answer)
  }

  /** Undefined if there was no answer, which is wrong in itself. */
  async #ask(
    operation: string,
    connection: HttpConnection,
    method: string,
    target: string,
    body = '',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer | undefined> {
    const startedMs = performance.now()
    let answer: HttpAnswer | undefined
    try {
      answer = await connection.request(method, target, body, headers, hangMs)
      if (answer.status !== 204) JSON.parse(answer.body)
      if (answer.status === 503 && !answer.head.includes('\nretry-after: '))
        this.#wrong.push(`${operation}: 503 without Retry-After`)
    } catch (error) {
      this.#wrong.push(`${operation}: ${error}`)
    }
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedMs)
    const outcome = `${operation} ${answer?.status ?? 'without an answer'}`
    this.#statuses.set(outcome, (this.#statuses.get(outcome) ?? 0) + 1)
    if (outcome === 'create 200' || outcome === 'delete 204') {
      this.#gap = this.gap
      this.#lastWriteMs = performance.now()
    }
    return answer
  }

  #isWrong(what: string, { status, body }: HttpAnswer): void {
    this.#wrong.push(`${what}: ${status} ${body.slice(0, 200)}`)
  }

  #lookFor(id: number): void {
    this.#lookedFor.push(id)
    if (this.#lookedFor.length > lookedForMax) this.#lookedFor.shift()
  }
}

/** Where a list begins at this id, as Link headers have it: eight bytes in base64url. */
function cursorBefore(id: number): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(id - 1))
  return bytes.toString('base64url')
}
