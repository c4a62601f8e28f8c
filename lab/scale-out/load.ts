// Load by clients that remember what they were told: creators of unique ids, deleters and readers
// of what was acknowledged. It measures, and finds where an answer contradicts an earlier one.
import { type HttpAnswer, HttpConnection } from './client.ts'

export interface LoadOptions {
  /** Each client keeps to one of them. */
  readonly urls: readonly string[]
  readonly token: string
  readonly creators: number
  readonly deleters: number
  readonly readers: number
  /** Between two requests of a client. */
  readonly pauseMs: number
  /** Longer than the service may take. */
  readonly timeoutMs: number
}

/** What was seen between `begin` and `end`. */
export interface Measures {
  /** Longest time without an acknowledged write, and when it was over. */
  readonly writeGapMs: number
  readonly writeGapEndMs: number
  readonly slowestMs: number
  /** Answers per status; 0 is none. */
  readonly answers: ReadonlyMap<number, number>
}

export interface Losses {
  readonly creates: number
  readonly deletes: number
  /** What was made although the answer said that nothing was done. */
  readonly denied: number
}

/** How a write ended. */
interface Settled {
  readonly status: number
  /** Whether an earlier attempt may have been carried out. */
  readonly uncertain: boolean
  /** The answers to earlier attempts, for the report. */
  readonly earlier: string
}

const attemptsMax = 200
const retryPauseMs = 100
/** Plants that readers look for: the ones acknowledged last. */
const lookedForMax = 1000
const contradictionsMax = 20

export class Load {
  readonly #options: LoadOptions
  /** What an id must be, by what was acknowledged; absent: nobody can tell. */
  readonly #expected = new Map<bigint, 'present' | 'absent' | 'never made'>()
  readonly #toDelete: bigint[] = []
  readonly #lookedFor: bigint[] = []
  readonly #clients: Promise<void>[] = []
  readonly contradictions: string[] = []
  #contradictionCount = 0
  #nextId = 1n
  #stopping = false
  #answers = new Map<number, number>()
  #slowestMs = 0
  #acknowledgedMs = 0
  #gap = { lengthMs: 0, endMs: 0 }

  constructor(options: LoadOptions) {
    this.#options = options
  }

  start(): void {
    const { creators, deleters, readers } = this.#options
    const work = [
      ...Array.from(
        { length: creators },
        () => (connection: HttpConnection) => this.#create(connection),
      ),
      ...Array.from(
        { length: deleters },
        () => (connection: HttpConnection) => this.#delete(connection),
      ),
      ...Array.from(
        { length: readers },
        () => (connection: HttpConnection) => this.#read(connection),
      ),
    ]
    this.begin()
    work.forEach((step, index) => void this.#clients.push(this.#client(step, index)))
  }

  /** Resolves when every request under way is answered. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#clients)
  }

  begin(): void {
    this.#answers = new Map()
    this.#slowestMs = 0
    this.#acknowledgedMs = performance.now()
    this.#gap = { lengthMs: 0, endMs: 0 }
  }

  end(): Measures {
    this.#measureGap()
    const { lengthMs, endMs } = this.#gap
    return {
      writeGapMs: lengthMs,
      writeGapEndMs: endMs,
      slowestMs: this.#slowestMs,
      answers: this.#answers,
    }
  }

  get contradictionCount(): number {
    return this.#contradictionCount
  }

  acknowledged(): { readonly creates: number; readonly deletes: number; readonly unknown: number } {
    const states = [...this.#expected.values()]
    const deletes = states.filter((state) => state === 'absent').length
    const present = states.filter((state) => state === 'present').length
    const never = states.filter((state) => state === 'never made').length
    return {
      creates: present + deletes,
      deletes,
      unknown: Number(this.#nextId) - 1 - present - deletes - never,
    }
  }

  losses(present: ReadonlySet<bigint>): Losses {
    const entries = [...this.#expected]
    return {
      creates: entries.filter(([id, state]) => state === 'present' && !present.has(id)).length,
      deletes: entries.filter(([id, state]) => state === 'absent' && present.has(id)).length,
      denied: entries.filter(([id, state]) => state === 'never made' && present.has(id)).length,
    }
  }

  async #client(step: (connection: HttpConnection) => Promise<void>, index: number): Promise<void> {
    const { urls, pauseMs } = this.#options
    const connection = new HttpConnection(urls[index % urls.length] ?? '')
    while (!this.#stopping) {
      await step(connection)
      await Bun.sleep(pauseMs)
    }
    connection.close()
  }

  /** Half of the creates carry a key, with which a retry may never meet a conflict. */
  async #create(connection: HttpConnection): Promise<void> {
    const id = this.#nextId
    this.#nextId += 1n
    const key = id % 2n === 0n ? { 'idempotency-key': `key-${id}` } : {}
    const body = `{"id":${id},"name":"${nameOf(id)}"}`
    const { status, uncertain, earlier } = await this.#settled(
      connection,
      'POST',
      '/plants',
      key,
      body,
    )
    if (status === 200) this.#created(id)
    else if (status === 409 && !(uncertain && id % 2n === 1n))
      this.#contradiction(`409 to the create of ${id}, which only we make${earlier}`)
    else if (status === 503 && !uncertain) this.#expected.set(id, 'never made')
    else if (status !== 503 && status !== 0 && status !== 409)
      this.#contradiction(`${status} to a create`)
  }

  #created(id: bigint): void {
    this.#expected.set(id, 'present')
    if (id % 4n < 2n) this.#toDelete.push(id)
    else this.#lookFor(id)
  }

  #lookFor(id: bigint): void {
    this.#lookedFor.push(id)
    if (this.#lookedFor.length > lookedForMax) this.#lookedFor.shift()
  }

  async #delete(connection: HttpConnection): Promise<void> {
    const id = this.#toDelete.shift()
    if (id === undefined) return
    this.#expected.delete(id)
    const { status, uncertain, earlier } = await this.#settled(
      connection,
      'DELETE',
      `/plants/${id}`,
      {},
      '',
    )
    if (status === 204) {
      this.#expected.set(id, 'absent')
      this.#lookFor(id)
    } else if (status === 404 && !uncertain)
      this.#contradiction(`404 to the delete of ${id}, which was acknowledged${earlier}`)
    else if (status === 503 && !uncertain) this.#expected.set(id, 'present')
    else if (status !== 503 && status !== 0 && status !== 404)
      this.#contradiction(`${status} to a delete`)
  }

  /**
   * A list that begins at an id shows its plant where it was created, and not where it was deleted.
   */
  async #read(connection: HttpConnection): Promise<void> {
    const id = this.#lookedFor[Math.floor(Math.random() * this.#lookedFor.length)]
    const expected = id === undefined ? undefined : this.#expected.get(id)
    if (id === undefined || expected === undefined) return
    const { status, body } = await this.#send(
      connection,
      'GET',
      `/plants?limit=20&after=${cursorBefore(id)}`,
      {},
      '',
    )
    if (status === 200) {
      const found = body.includes(`"${nameOf(id)}"`)
      if (found !== (expected === 'present'))
        this.#contradiction(`a list without what was acknowledged: ${id} must be ${expected}`)
    } else if (status !== 503 && status !== 0) this.#contradiction(`${status} to a list`)
  }

  /**
   * Sends a write until it is answered otherwise than by a failure of the store; says whether an
   * earlier attempt is in doubt.
   */
  async #settled(
    connection: HttpConnection,
    method: string,
    target: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<Settled> {
    let uncertain = false
    let earlier = ''
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#send(connection, method, target, headers, body)
      if (answer.status === 200 || answer.status === 204) this.#measureGap()
      const failed =
        answer.status === 503 ||
        answer.status === 502 ||
        answer.status === 504 ||
        answer.status === 0
      if (!failed) return { status: answer.status, uncertain, earlier }
      uncertain ||=
        answer.status !== 503 ||
        !answer.body.includes('try again') ||
        answer.body.includes('not known')
      if (this.#stopping || attempt === attemptsMax)
        return { status: answer.status, uncertain, earlier }
      earlier += `, after ${answer.status} ${answer.body}`
      await Bun.sleep(retryPauseMs * (0.5 + Math.random()))
    }
  }

  async #send(
    connection: HttpConnection,
    method: string,
    target: string,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<HttpAnswer> {
    const { token, timeoutMs } = this.#options
    const startedMs = performance.now()
    const all = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers }
    const answer = await connection
      .request(method, target, all, body, timeoutMs)
      .catch(() => ({ status: 0, body: '' }))
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedMs)
    this.#answers.set(answer.status, (this.#answers.get(answer.status) ?? 0) + 1)
    return answer
  }

  #measureGap(): void {
    const nowMs = performance.now()
    const lengthMs = nowMs - this.#acknowledgedMs
    if (lengthMs > this.#gap.lengthMs) this.#gap = { lengthMs, endMs: nowMs }
    this.#acknowledgedMs = nowMs
  }

  #contradiction(what: string): void {
    this.#contradictionCount += 1
    if (this.contradictions.length < contradictionsMax)
      this.contradictions.push(`${new Date().toISOString()} ${what}`)
  }
}

function nameOf(id: bigint): string {
  return `plant ${id}`
}

/**
 * The cursor of a list that begins at this id, as Link headers carry it: eight bytes in base64url.
 */
function cursorBefore(id: bigint): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(id - 1n)
  return bytes.toString('base64url')
}
