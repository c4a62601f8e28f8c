// How the cluster is reached, and how a failover is followed.
//
// The location names hosts. If one of them takes writes (`primary`), that one is used, and nobody
// tells which it is. So all hosts are asked at once. Each connection is greeted (connection.ts),
// and a host that is a standby, or could not keep the promises of the store, is refused there. The
// first that passes is used, and the others that pass later are let go. If every host takes writes
// (`any`), all that pass are used in turn, and those that are missing are sought every 5 seconds,
// beside the work.
//
// A Node is one host in use, with its pool of connections (node.ts). A statement is sent to it
// once. If that fails, the fault says what the failure means for the connection (faults.ts): it may
// be as good as before, or be spent, or tell that the host itself is lost. A connection that breaks
// is spent and no more: those beside it are left alone. If the host is lost, the node is
// retired: no further statement goes there, the operator is told, and its connections end when what
// they carry is answered. The next statement finds no node and seeks one. All statements wait for
// the same search, so that a failover brings no storm of connections.
//
// A host is lost in one of two ways. All its connections end and no new one can be had, or it is
// silent for longer than an answer may take: the machine is gone, or the network. Or it answers
// that it takes no writes any more: another host is now the primary, and this one has come back as
// a standby.
//
// During a failover no host may pass for some seconds. The search then fails, and nothing was sent.
// attempts.ts pauses and asks again for as long as the operation may take, so that a failover of a
// few seconds costs its callers time and no error. The host that has just failed may still be
// answering, for example while it is shutting down. So it comes last, and the others get 150 ms to
// come before it.
//
// How many connections to a host are in use at once is counted by host and not by node (slots.ts):
// a node that was retired may still hold some while another takes its place. A write that was given
// up may still be at work in the server, or even still be on its way: why that does no harm is told
// in ../plants.ts.
import type { Clock } from '../../../clock.ts'
import { describeHost, type PostgresHost, type PostgresLocation } from '../location.ts'
import type { Statement } from '../statements.ts'
import type { Deadlines } from './deadlines.ts'
import { Fault, faultOf, unsent } from './faults.ts'
import { Node, type Row } from './node.ts'
import { Slots } from './slots.ts'

/** How long a host that has just failed lets others come before it. */
const othersFirstMs = 150
/** How often a host that is missing is sought, if every host takes writes. */
const seekMissingMs = 5000

export class Nodes {
  readonly #location: PostgresLocation
  readonly #deadlines: Deadlines
  readonly #clock: Clock
  readonly #note: (message: string) => void
  readonly #warn: (message: string) => void
  /** By host and not by node, so that their bound holds while one node takes another's place. */
  readonly #slots: ReadonlyMap<PostgresHost, Slots>
  readonly #ending = new Set<Promise<void>>()
  #usable: Node[] = []
  #next = 0
  #seeking: Promise<void> | undefined
  #soughtMs = Number.NEGATIVE_INFINITY
  #failed: PostgresHost | undefined
  #closed = false

  constructor(
    location: PostgresLocation,
    deadlines: Deadlines,
    clock: Clock,
    note: (message: string) => void = () => {},
    warn: (message: string) => void = () => {},
  ) {
    this.#location = location
    this.#deadlines = deadlines
    this.#clock = clock
    this.#note = note
    this.#warn = warn
    this.#slots = new Map(
      location.hosts.map((host) => [host, new Slots(location.connectionsMax, clock)]),
    )
  }

  get isClosed(): boolean {
    return this.#closed
  }

  /**
   * Finds a host that can be used. Rejects with an AggregateError: a Fault for each host, named by
   * it, whose cause is why it cannot be used.
   */
  async connect(): Promise<void> {
    await this.#node()
  }

  /** Sends a statement and resolves to its rows. Rejects with what `faultOf` understands. */
  async send(
    statement: Statement,
    values: readonly unknown[],
    writes: boolean,
  ): Promise<readonly Row[]> {
    const node = await this.#node().catch((error: unknown) => {
      throw new Fault('no connection to the database', unsent, error)
    })
    try {
      return await node.send(statement, values, writes)
    } catch (error) {
      const { connection } = faultOf(error)
      if (connection === 'lost' || connection === 'silent') this.#retire(node)
      throw error
    }
  }

  /** Lets go of all connections. What was sent is waited for, though not for long. */
  async close(): Promise<void> {
    this.#closed = true
    for (const node of this.#usable) this.#retire(node)
    const callOff = this.#clock.after(this.#deadlines.connectMs, () => {
      for (const slots of this.#slots.values()) slots.cut()
    })
    await Promise.all(this.#ending)
    callOff()
  }

  /** Takes a node out of use. What was sent to it may still be answered. */
  #retire(node: Node): void {
    if (!this.#usable.includes(node)) return
    this.#usable = this.#usable.filter((other) => other !== node)
    this.#failed = node.host
    if (!this.#closed) this.#warn(`lost the database at ${describeHost(node.host)}`)
    this.#end(node)
  }

  #end(node: Node): void {
    const ended = node.end().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  async #node(): Promise<Node> {
    if (this.#closed) throw new Error('the store is closed')
    if (this.#usable.length === 0) await this.#seek()
    else if (
      this.#location.writableHosts === 'any' &&
      this.#usable.length < this.#location.hosts.length &&
      this.#clock.monotonicMs() - this.#soughtMs > seekMissingMs
    )
      void this.#seek().catch(() => {})
    this.#next += 1
    const node = this.#usable[this.#next % this.#usable.length]
    if (node === undefined) throw new Error('the connection was lost')
    return node
  }

  /** One search at a time. All that need a node wait for it. */
  #seek(): Promise<void> {
    this.#seeking ??= this.#seekAll().finally(() => {
      this.#seeking = undefined
    })
    return this.#seeking
  }

  /** Asks all missing hosts at once; resolves with the first that can be used. */
  async #seekAll(): Promise<void> {
    this.#soughtMs = this.#clock.monotonicMs()
    // The one that has just failed last: it lets the others come before it.
    const missing = this.#location.hosts
      .filter((host) => !this.#uses(host))
      .toSorted((one, other) => Number(one === this.#failed) - Number(other === this.#failed))
    const attempts: Promise<void>[] = []
    for (const host of missing)
      attempts.push(this.#join(host, host === this.#failed ? [...attempts] : []))
    try {
      await Promise.any(attempts)
    } catch (failure) {
      const { errors } = failure as AggregateError
      throw new AggregateError(
        missing.map((host, index) => new Fault(describeHost(host), unsent, errors[index])),
        missing
          .map((host, index) => `${describeHost(host)}: ${(errors[index] as Error).message}`)
          .join('; '),
      )
    }
  }

  /** Connects to a host and puts it to use, unless one is enough and another came before. */
  async #join(host: PostgresHost, others: readonly Promise<void>[]): Promise<void> {
    const slots = this.#slots.get(host) as Slots
    const node = await Node.connect(this.#location, host, slots, this.#deadlines, this.#clock)
    await Promise.race([Promise.allSettled(others), this.#clock.sleep(othersFirstMs)])
    const taken =
      this.#location.writableHosts === 'primary' ? this.#usable.length > 0 : this.#uses(host)
    if (taken || this.#closed) {
      this.#end(node)
      return
    }
    this.#usable.push(node)
    this.#note(
      `connected to the database at ${describeHost(host)} (${node.encrypted ? 'TLS' : 'no TLS'})`,
    )
  }

  #uses(host: PostgresHost): boolean {
    return this.#usable.some((node) => node.host === host)
  }
}
