// The connections: to the one host that takes writes, which is sought again after each failure, or
// to all of them where each does. It sends a statement once; trying again is attempts.ts's affair.
import { Pool, type PoolClient, types } from 'pg'
import { describeHost, type PostgresHost, type PostgresLocation } from '../../storeLocation.ts'
import { encryption, isWithoutEncryption } from './encryption.ts'
import { CommitWarned, faultOf, NotConnected } from './faults.ts'
import { greet, HostRefused } from './greeting.ts'
import type { Statement } from './statements.ts'

export interface Deadlines {
  /** How long to wait for a connection, be it a new one or one that others use. */
  readonly connectMs: number
  /** How long the server may work on a statement before it gives up. */
  readonly statementMs: number
  /** How long to wait for the answer to a statement before its connection counts as dead. */
  readonly answerMs: number
  /** How long an operation may go on trying. Below the minute after which a request is cut off. */
  readonly operationMs: number
}

export const defaultDeadlines: Deadlines = { connectMs: 2000, statementMs: 2500, answerMs: 3000, operationMs: 8000 }

/** How long an idle connection is kept. */
const idleMs = 60_000
/** How long a host that has just failed lets others come before it, where others take writes too. */
const othersFirstMs = 150
/** How often a host that is missing is sought, where every host takes writes. */
const seekMissingMs = 5000

export type Row = Readonly<Record<string, unknown>>

/** Why each host cannot be used. */
export class NoHost extends Error {
  readonly failures: readonly { readonly host: PostgresHost; readonly error: unknown }[]

  constructor(failures: NoHost['failures']) {
    super(failures.map(({ host, error }) => `${describeHost(host)}: ${(error as Error).message}`).join('; '))
    this.failures = failures
  }
}

interface Node {
  readonly host: PostgresHost
  readonly pool: Pool
}

export class Nodes {
  readonly #location: PostgresLocation
  readonly #deadlines: Deadlines
  readonly #note: (message: string) => void
  readonly #pools = new Set<Pool>()
  #usable: Node[] = []
  #next = 0
  #seeking: Promise<void> | undefined
  #soughtMs = Number.NEGATIVE_INFINITY
  #failed: PostgresHost | undefined
  #closed = false

  constructor(location: PostgresLocation, deadlines: Deadlines, note: (message: string) => void) {
    this.#location = location
    this.#deadlines = deadlines
    this.#note = note
  }

  /** Finds a host that can be used, or rejects with NoHost. */
  async connect(): Promise<void> {
    await this.#node()
  }

  /**
   * Sends a statement and resolves to its rows. Rejects with what `faultOf` understands; a connection
   * that is lost is not used again.
   */
  async send(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    const { node, client } = await this.#client()
    let warned = false
    const onNotice = ({ code }: { code?: string | undefined }): void => {
      if (code?.startsWith('01')) warned = true
    }
    client.on('notice', onNotice)
    try {
      const { rows } = await client.query<Row>({ ...statement, values: [...values] })
      client.release()
      if (warned) throw new CommitWarned('the commit came with a warning')
      return rows
    } catch (error) {
      if (!(error instanceof CommitWarned)) this.#releaseFailed(node, client, error)
      throw error
    } finally {
      client.off('notice', onNotice)
    }
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /** Lets go of all connections, once what was sent is answered. */
  async close(): Promise<void> {
    this.#closed = true
    this.#usable = []
    await Promise.all([...this.#pools].map((pool) => this.#end(pool)))
  }

  async #client(): Promise<{ node: Node; client: PoolClient }> {
    let node: Node | undefined
    try {
      node = await this.#node()
      return { node, client: await node.pool.connect() }
    } catch (error) {
      if (node !== undefined && !isPatienceWithOthers(error)) this.#retire(node)
      throw new NotConnected(error)
    }
  }

  #releaseFailed(node: Node, client: PoolClient, error: unknown): void {
    const { connectionLost } = faultOf(error)
    client.release(connectionLost)
    if (connectionLost) this.#retire(node)
  }

  /** Takes a node out of use. What waits for its connections still gets an answer or an error. */
  #retire(node: Node): void {
    if (!this.#usable.includes(node)) return
    this.#usable = this.#usable.filter((other) => other !== node)
    this.#failed = node.host
    setTimeout(() => void this.#end(node.pool), this.#deadlines.connectMs + this.#deadlines.answerMs).unref()
  }

  async #end(pool: Pool): Promise<void> {
    if (this.#pools.delete(pool)) await pool.end()
  }

  async #node(): Promise<Node> {
    if (this.#closed) throw new HostRefused('the store is closed')
    if (this.#usable.length === 0) await this.#seek()
    else if (this.#isMissingOne()) void this.#seek().catch(() => {})
    this.#next += 1
    const node = this.#usable[this.#next % this.#usable.length]
    if (node === undefined) throw new HostRefused('the connection was lost')
    return node
  }

  #isMissingOne(): boolean {
    const { writableHosts, hosts } = this.#location
    const complete = writableHosts === 'primary' || this.#usable.length === hosts.length
    return !complete && performance.now() - this.#soughtMs > seekMissingMs
  }

  /** One search at a time, which all who need a node wait for. */
  #seek(): Promise<void> {
    this.#seeking ??= this.#seekAll().finally(() => {
      this.#seeking = undefined
    })
    return this.#seeking
  }

  /** Asks all missing hosts at once; resolves with the first that can be used. */
  async #seekAll(): Promise<void> {
    this.#soughtMs = performance.now()
    // The one that has just failed last: it lets the others come before it.
    const missing = this.#location.hosts
      .filter((host) => !this.#usable.some((node) => node.host === host))
      .toSorted((one, other) => Number(one === this.#failed) - Number(other === this.#failed))
    const attempts: Promise<void>[] = []
    for (const host of missing) attempts.push(this.#join(host, host === this.#failed ? [...attempts] : []))
    try {
      await Promise.any(attempts)
    } catch (failure) {
      const { errors } = failure as AggregateError
      throw new NoHost(missing.map((host, index) => ({ host, error: errors[index] })))
    }
  }

  /** Connects to a host and puts it to use, unless another came before where one is enough. */
  async #join(host: PostgresHost, others: readonly Promise<void>[]): Promise<void> {
    const pool = await this.#connectedPool(host)
    await Promise.race([Promise.allSettled(others), new Promise((resolve) => setTimeout(resolve, othersFirstMs))])
    const taken = this.#location.writableHosts === 'primary' && this.#usable.length > 0
    if (taken || this.#closed) {
      await this.#end(pool)
      return
    }
    this.#usable.push({ host, pool })
    this.#note(`connected to the database at ${describeHost(host)}`)
  }

  async #connectedPool(host: PostgresHost): Promise<Pool> {
    const { sslMode } = this.#location
    try {
      return await this.#connected(this.#newPool(host, encryption(this.#location)))
    } catch (error) {
      if (sslMode !== 'prefer' || !isWithoutEncryption(error)) throw error
      return await this.#connected(this.#newPool(host, false))
    }
  }

  /** The pool, once a first connection of it is made and greeted; the pool is ended where that fails. */
  async #connected(pool: Pool): Promise<Pool> {
    try {
      const client = await pool.connect()
      client.release()
      return pool
    } catch (error) {
      void this.#end(pool)
      throw error
    }
  }

  #newPool(host: PostgresHost, ssl: ReturnType<typeof encryption>): Pool {
    const { user, database, connectionsMax, writableHosts } = this.#location
    const { connectMs, answerMs, statementMs } = this.#deadlines
    const pool = new Pool({
      host: host.host,
      port: host.port,
      user,
      database,
      // Always given, so that the driver looks nowhere else for it.
      password: () => host.password ?? '',
      ssl,
      application_name: 'plants',
      max: connectionsMax,
      connectionTimeoutMillis: connectMs,
      query_timeout: answerMs,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
      types: { getTypeParser },
      onConnect: (client) => greet(client, { statementMs, writableHosts }),
    })
    this.#pools.add(pool)
    // Without listeners the loss of an idle connection would end the process. Whoever uses one sees it fail.
    pool.on('error', () => {})
    pool.on('connect', (client) => client.on('error', () => {}))
    return pool
  }
}

const int8 = 20

/** 64-bit integers as bigint: a number would round them. */
const getTypeParser: typeof types.getTypeParser = (type: number, format?: 'text' | 'binary') =>
  type === int8 ? BigInt : types.getTypeParser(type, format as 'text')

/** The driver's words where all connections were in use for too long, which says nothing of the host. */
function isPatienceWithOthers(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect'
}
