// Clients that create, delete and list without a pause, and know of each id what was acknowledged:
// what a service answers while its store fails is held against that.

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
  /** Ids whose delete was acknowledged, and whose plants are there. */
  readonly risen: readonly number[]
  /** Ids that nobody created. */
  readonly invented: readonly number[]
}

export const nothingWrong: Findings = { wrong: [], twice: 0, lost: [], risen: [], invented: [] }

/** No answer may take longer than this: it would be a hang. */
const hangMs = 30_000

export class Load {
  readonly #urls: readonly string[]
  readonly #token: string
  readonly #known = new Map<number, Known>()
  readonly #statuses = new Map<string, number>()
  readonly #wrong: string[] = []
  #running: Promise<unknown> | undefined
  #stopped = false
  #lastWriteMs = performance.now()
  #gapMs = 0

  constructor(urls: readonly string[], token: string) {
    this.#urls = urls
    this.#token = token
  }

  /** How many writes were acknowledged. */
  get acknowledged(): number {
    return (this.#statuses.get('create 200') ?? 0) + (this.#statuses.get('delete 204') ?? 0)
  }

  /** The longest time without an acknowledged write. */
  get gapMs(): number {
    return Math.max(this.#gapMs, performance.now() - this.#lastWriteMs)
  }

  get statuses(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#statuses].sort())
  }

  start(clients: number): void {
    this.#lastWriteMs = performance.now()
    this.#running = Promise.all(
      Array.from({ length: clients }, (_, client) => this.#run(client, clients)),
    )
  }

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
    const response = await this.#fetch(this.#urls[0] ?? '', 'GET', '/plants')
    const plants = JSON.parse(await response.text()) as { name: string }[]
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

  async #run(client: number, clients: number): Promise<void> {
    const url = this.#urls[client % this.#urls.length] ?? ''
    for (let n = 0; !this.#stopped; n += 1) {
      const id = n * clients + client
      await this.#create(url, id)
      if (n % 3 === 2) await this.#delete(url, (n - 2) * clients + client)
      if (n % 5 === 4) await this.#list(url)
    }
  }

  async #create(url: string, id: number): Promise<void> {
    this.#known.set(id, 'unknown')
    const status = await this.#status(
      'create',
      url,
      'POST',
      '/plants',
      `{"id":${id},"name":"${id}"}`,
    )
    if (status === 200) this.#known.set(id, 'present')
    else if (status !== 503) this.#wrong.push(`create of a new id: ${status}`)
  }

  async #delete(url: string, id: number): Promise<void> {
    const before = this.#known.get(id)
    this.#known.set(id, 'unknown')
    const status = await this.#status('delete', url, 'DELETE', `/plants/${id}`)
    if (status === 204 || (status === 404 && before === 'unknown')) this.#known.set(id, 'absent')
    else if (status !== 503) this.#wrong.push(`delete of a plant that is ${before}: ${status}`)
  }

  async #list(url: string): Promise<void> {
    const status = await this.#status('list', url, 'GET', '/plants?limit=20')
    if (status !== 200 && status !== 503) this.#wrong.push(`list: ${status}`)
  }

  async #status(
    what: string,
    url: string,
    method: string,
    target: string,
    body?: string,
  ): Promise<number | string> {
    const outcome = await this.#outcome(url, method, target, body)
    const key = `${what} ${outcome}`
    this.#statuses.set(key, (this.#statuses.get(key) ?? 0) + 1)
    if (key === 'create 200' || key === 'delete 204') {
      this.#gapMs = this.gapMs
      this.#lastWriteMs = performance.now()
    }
    return outcome
  }

  async #outcome(
    url: string,
    method: string,
    target: string,
    body?: string,
  ): Promise<number | string> {
    try {
      const response = await this.#fetch(url, method, target, body)
      const text = await response.text()
      if (response.status !== 204) JSON.parse(text)
      if (response.status === 503 && response.headers.get('retry-after') === null)
        return '503 without Retry-After'
      return response.status
    } catch (error) {
      return String(error)
    }
  }

  #fetch(url: string, method: string, target: string, body?: string): Promise<Response> {
    return fetch(url + target, {
      method,
      headers: { Authorization: `Bearer ${this.#token}`, 'Content-Type': 'application/json' },
      signal: AbortSignal.timeout(hangMs),
      ...(body === undefined ? {} : { body }),
    })
  }
}
