// The store on the PostgreSQL protocol: plain statements, tried until they are done or too late. No
// truth is kept here, so that any number of processes may share a database.
import type { Clock } from '../../clock.ts'
import type { Copyable, Store } from '../../domain/store.ts'
import type { Committed, StoreOptions } from '../location.ts'
import { Attempts } from './attempts.ts'
import { commandDeadlines, requestDeadlines } from './cluster/deadlines.ts'
import { Nodes } from './cluster/nodes.ts'
import type { PostgresLocation } from './location.ts'
import { PostgresPlants } from './plants.ts'
import { postgresRefusal } from './refusal.ts'
import { type Engine, migrate, pendingStatements, requireSchema } from './schema.ts'
import { statements } from './statements.ts'
import { PostgresTokens } from './tokens.ts'

/**
 * Opens the store in a database that `plants migrate` has prepared. Rejects with Refused if it
 * cannot serve.
 */
export async function openPostgresStore(
  location: PostgresLocation,
  { patience, clock, randomBytes, note, warn, committed }: StoreOptions,
): Promise<Store> {
  const deadlines = patience === 'of a command' ? commandDeadlines : requestDeadlines
  const nodes = new Nodes(location, deadlines, clock, note, warn)
  try {
    // If a pooler hands on what this connection has prepared, the next one is refused.
    const first = new Nodes(location, deadlines, clock)
    await first.connect()
    await first.close()
    await nodes.connect()
    const engine = await requireSchema(nodes)
    return new PostgresStore(nodes, engine, deadlines.operationMs, randomBytes, clock, committed)
  } catch (error) {
    await nodes.close()
    throw postgresRefusal(location, error)
  }
}

/**
 * Brings a database to this version's schema and resolves to the statements that were needed; with
 * `onlyLook` it carries out none. Rejects with Refused.
 */
export async function migratePostgresStore(
  location: PostgresLocation,
  onlyLook: boolean,
  clock: Clock,
): Promise<readonly string[]> {
  const nodes = new Nodes(location, commandDeadlines, clock)
  try {
    await nodes.connect()
    const pending = await pendingStatements(nodes)
    if (!onlyLook) await migrate(nodes, pending, clock)
    return pending
  } catch (error) {
    throw postgresRefusal(location, error)
  } finally {
    await nodes.close()
  }
}

/** How long a probe counts, because anybody may ask for one, and it writes. */
const probeCountsMs = 1000

class PostgresStore implements Store {
  readonly plants: PostgresPlants
  readonly tokens: PostgresTokens
  readonly kept: Copyable
  readonly #nodes: Nodes
  readonly #attempts: Attempts
  readonly #clock: Clock
  #probe: Promise<void> = Promise.resolve()
  #nextProbeMs = Number.NEGATIVE_INFINITY
  #closed: Promise<void> | undefined

  constructor(
    nodes: Nodes,
    engine: Engine,
    operationMs: number,
    randomBytes: (count: number) => Uint8Array,
    clock: Clock,
    committed: Committed | undefined,
  ) {
    this.#nodes = nodes
    this.#clock = clock
    this.#attempts = new Attempts(nodes, engine, operationMs, randomBytes, clock)
    this.plants = new PostgresPlants(
      this.#attempts,
      engine,
      operationMs,
      randomBytes,
      clock,
      committed,
    )
    this.tokens = new PostgresTokens(this.#attempts, clock)
    this.kept = {
      plants: (account, range) => this.plants.kept(account, range),
      countPlants: (account) => this.plants.count(account),
      tokens: (range) => this.tokens.kept(range),
    }
  }

  ready(): Promise<void> {
    if (this.#clock.monotonicMs() >= this.#nextProbeMs || this.#nodes.isClosed) {
      // All who ask while one is under way wait for that one.
      this.#nextProbeMs = Number.POSITIVE_INFINITY
      this.#probe = this.#attempts.tryOnce(statements.probe, ['']).finally(() => {
        this.#nextProbeMs = this.#clock.monotonicMs() + probeCountsMs
      })
    }
    return this.#probe
  }

  waitingWrites(): number {
    return this.plants.waitingWrites()
  }

  /** Of the whole database, on the node that answers. */
  async bytes(): Promise<number> {
    const [row] = await this.#attempts.read(statements.databaseBytes, [])
    return Number(row?.['bytes'])
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.plants.finish()
    await this.#nodes.close()
  }
}
