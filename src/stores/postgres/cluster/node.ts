// One host that takes writes, and the connections to it.
import { type ClientBase, Pool, type PoolClient } from 'pg'
import type { Clock } from '../../../clock.ts'
import type { PostgresHost, PostgresLocation } from '../location.ts'
import type { Statement } from '../statements.ts'
import { destroy, encryption, getTypeParser, greet, isWithoutEncryption } from './connection.ts'
import type { Deadlines } from './deadlines.ts'
import { Fault, faultOf, unanswered, unconfirmed, unreachable, unsent } from './faults.ts'
import type { Slots } from './slots.ts'

/** How long an idle connection is kept. */
const idleMs = 60_000
/** How long a write without an answer keeps its connection (slots.ts). */
const leftBehindMs = 60_000

export type Row = Readonly<Record<string, unknown>>

export class Node {
  readonly host: PostgresHost
  readonly encrypted: boolean
  readonly #pool: Pool
  readonly #slots: Slots
  readonly #deadlines: Deadlines
  readonly #clock: Clock
  #password: string | undefined
  /** How many connections were made and have not ended. */
  #connections = 0

  private constructor(
    location: PostgresLocation,
    host: PostgresHost,
    slots: Slots,
    deadlines: Deadlines,
    clock: Clock,
    encrypted: boolean,
  ) {
    this.host = host
    this.encrypted = encrypted && location.sslMode !== 'disable'
    this.#slots = slots
    this.#deadlines = deadlines
    this.#clock = clock
    this.#password = host.readPassword()
    this.#pool = new Pool({
      host: host.host,
      port: host.port,
      user: location.user,
      database: location.database,
      // Always given, so that the driver looks nowhere else for it.
      password: () => this.#password ?? '',
      ssl: encrypted && encryption(location),
      application_name: 'plants',
      max: location.connectionsMax,
      connectionTimeoutMillis: deadlines.connectMs,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
      types: { getTypeParser },
      onConnect: (client) => this.#welcome(client, location),
    })
    // Without listeners the loss of an idle connection would end the process. If one is in use, its
    // statement fails.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => {
      this.#connections += 1
      client.on('error', () => {})
      client.once('end', () => {
        this.#connections -= 1
      })
    })
  }

  /**
   * Resolves once a first connection is made and greeted; rejects with why the host cannot be used.
   */
  static async connect(
    location: PostgresLocation,
    host: PostgresHost,
    slots: Slots,
    deadlines: Deadlines,
    clock: Clock,
  ): Promise<Node> {
    try {
      return await new Node(location, host, slots, deadlines, clock, true).#connected()
    } catch (error) {
      if (location.sslMode !== 'prefer' || !isWithoutEncryption(error)) throw error
      return await new Node(location, host, slots, deadlines, clock, false).#connected()
    }
  }

  /** Sends a statement once and resolves to its rows; rejects with what `faultOf` understands. */
  async send(
    statement: Statement,
    values: readonly unknown[],
    writes: boolean,
  ): Promise<readonly Row[]> {
    const { connectMs, answerMs } = this.#deadlines
    const slot = await this.#slots.take(writes, connectMs, () => this.#connection())
    const query = this.#query(slot.client, statement, values, writes)
    try {
      const rows = await this.#inTime(query, answerMs, 'the database did not answer in time')
      slot.giveBack(false)
      return rows
    } catch (error) {
      const { connection } = faultOf(error)
      if (writes && connection === 'silent') {
        slot.leaveBehind()
        // A commit that waits for a standby cannot be called off, and the server keeps its place.
        void this.#inTime(query, leftBehindMs, 'it was left behind')
          .catch(() => {})
          .finally(() => slot.giveBack(true))
      } else slot.giveBack(connection !== 'good')
      throw error
    }
  }

  /** Lets go of the connections, each once what was sent on it is answered. */
  async end(): Promise<void> {
    await this.#pool.end()
  }

  async #connected(): Promise<Node> {
    try {
      const client = await this.#pool.connect()
      client.release()
      return this
    } catch (error) {
      void this.#pool.end()
      throw error
    }
  }

  /** A connection of the pool. Rejects with a Fault. */
  async #connection(): Promise<PoolClient> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      const { code } = error as { code?: string }
      // The password is wrong: if it was changed in its file, the next attempt has the new one.
      if (code === '28P01') this.#password = this.host.readPassword() ?? this.#password
      // If others work, one that cannot be had says nothing of the host. Nor does one that was
      // ended (57P01) while it was made.
      const isLost = this.#connections === 0 && code !== '57P01'
      throw new Fault('no connection to the database', isLost ? unreachable : unsent, error)
    }
  }

  async #query(
    client: PoolClient,
    statement: Statement,
    values: readonly unknown[],
    writes: boolean,
  ): Promise<readonly Row[]> {
    // The statement is complete before its commit, so only a warning that comes later is about the
    // commit. The driver's connection, not its client, tells both in their order.
    let complete = false
    let warned = false
    const onComplete = (): void => {
      complete = true
    }
    const onNotice = ({ code }: { code?: string | undefined }): void => {
      if (complete && code?.startsWith('01')) warned = true
    }
    const { connection } = client
    connection.on('commandComplete', onComplete).on('notice', onNotice)
    try {
      const { name, text } = statement
      const { rows } = await client.query<Row>({ name, text, values: [...values] })
      if (warned && writes) throw new Fault('the commit came with a warning', unconfirmed)
      return rows
    } finally {
      connection.off('commandComplete', onComplete).off('notice', onNotice)
    }
  }

  /**
   * Greets a new connection. If that fails, the connection is cut off, because a farewell may never
   * end.
   */
  async #welcome(client: ClientBase, location: PostgresLocation): Promise<void> {
    try {
      const { connectMs, statementMs } = this.#deadlines
      const greeting = greet(client, { statementMs, writableHosts: location.writableHosts })
      await this.#inTime(greeting, connectMs, 'it does not answer')
    } catch (error) {
      destroy(client)
      throw error
    }
  }

  async #inTime<Value>(work: Promise<Value>, timeMs: number, late: string): Promise<Value> {
    let callOff = (): void => {}
    const end = new Promise<never>((_, reject) => {
      callOff = this.#clock.after(timeMs, () => reject(new Fault(late, unanswered)))
    })
    try {
      return await Promise.race([work, end])
    } finally {
      callOff()
    }
  }
}
