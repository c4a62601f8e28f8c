// The store on the PostgreSQL protocol: plain statements, each on one account, tried until they are
// done or too late. No truth is kept here, so that any number of processes may share a database.
import { systemClock } from '../../clock.ts'
import type { Copyable, Store } from '../../domain/store.ts'
import { Attempts } from './attempts.ts'
import { commandDeadlines, type Deadlines } from './cluster/deadlines.ts'
import { Nodes } from './cluster/nodes.ts'
import type { PostgresLocation } from './location.ts'
import { PostgresPlants } from './plants.ts'
import { refusal } from './refusal.ts'
import { migrate, pendingStatements, requireSchema } from './schema.ts'
import { statements } from './statements.ts'
import { PostgresTokens } from './tokens.ts'

export interface PostgresSurroundings {
  readonly randomBytes: (count: number) => Uint8Array
  /** Told of what the operator should know: which host is in use. */
  readonly note: (message: string) => void
  /** Told of what the operator should look at: the loss of a host. */
  readonly warn?: (message: string) => void
  readonly deadlines: Deadlines
}

/**
 * Opens the store in a database that `plants migrate` has prepared. Rejects with Refused where
 * it cannot serve.
 */
export async function openPostgresStore(
  location: PostgresLocation,
  surroundings: PostgresSurroundings,
): Promise<Store> {
  const { randomBytes, note, warn, deadlines } = surroundings
  const nodes = new Nodes(location, deadlines, note, warn)
  try {
    await nodes.connect()
    await requireSchema(nodes)
  } catch (error) {
    await nodes.close()
    throw refusal(location, error)
  }
  return new PostgresStore(nodes, deadlines, randomBytes)
}

/**
 * Brings a database to this version's schema and resolves to the statements that were needed; where
 * `onlyLook` it carries out none. Rejects with Refused.
 */
export async function migratePostgresStore(
  location: PostgresLocation,
  onlyLook: boolean,
): Promise<readonly string[]> {
  const nodes = new Nodes(location, commandDeadlines, () => {})
  try {
    await nodes.connect()
    const pending = await pendingStatements(nodes)
    if (!onlyLook) await migrate(nodes, pending)
    return pending
  } catch (error) {
    throw refusal(location, error)
  } finally {
    await nodes.close()
  }
}

class PostgresStore implements Store {
  readonly plants: PostgresPlants
  readonly tokens: PostgresTokens
  readonly kept: Copyable
  readonly #nodes: Nodes
  readonly #attempts: Attempts
  #closed: Promise<void> | undefined

  constructor(
    nodes: Nodes,
    { operationMs }: Deadlines,
    randomBytes: (count: number) => Uint8Array,
  ) {
    this.#nodes = nodes
    this.#attempts = new Attempts(nodes, operationMs, randomBytes)
    this.plants = new PostgresPlants(this.#attempts, operationMs, randomBytes, systemClock)
    this.tokens = new PostgresTokens(this.#attempts)
    this.kept = {
      plants: (account, range) => this.plants.kept(account, range),
      countPlants: () => this.plants.count(),
      tokens: (range) => this.tokens.kept(range),
    }
  }

  async ready(): Promise<void> {
    await this.#attempts.probe(statements.probe, ['', 0n])
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
