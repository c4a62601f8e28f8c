// The store on the PostgreSQL protocol: plain statements, each on one account, tried until they are
// done or too late. No truth is kept here, so that any number of processes may share a database.
import type { IdentifiedPlant, KeptPlant } from '../../domain/plant.ts'
import {
  type Answer,
  type Page,
  type PlantRange,
  pageTextMax,
  type Store,
  type TokenRange,
} from '../../domain/store.ts'
import { hashMax, hashMin, type KeptToken, type Token, type TokenHash } from '../../domain/token.ts'
import { nothingDone, writeUncertain } from '../failures.ts'
import { WaitingRoom } from '../groupCommit.ts'
import { firstAfter, idMax, tokenOf, tokenValues } from '../tokenRow.ts'
import { AccountBatches } from './accountBatches.ts'
import { Attempts } from './attempts.ts'
import { commandDeadlines, type Deadlines } from './cluster/deadlines.ts'
import { Nodes } from './cluster/nodes.ts'
import type { PostgresLocation } from './location.ts'
import { refusal } from './refusal.ts'
import { migrate, pendingStatements, requireSchema } from './schema.ts'
import { type Statement, statements } from './statements.ts'
import { TokenCache, tokenLifetimeMs } from './tokenCache.ts'

/** What a row takes at least, as text. */
const rowTextMin = 50

/** What became of a delete: whether the plant was there, or that nobody can tell. */
type Deleted = boolean | 'unknown'

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
  readonly tokenDelayMs = tokenLifetimeMs
  readonly #nodes: Nodes
  readonly #attempts: Attempts
  readonly #operationMs: number
  readonly #randomBytes: (count: number) => Uint8Array
  readonly #tokens: TokenCache
  readonly #creates: AccountBatches<KeptPlant, boolean>
  readonly #deletes: AccountBatches<bigint, Deleted>
  #closed: Promise<void> | undefined

  constructor(
    nodes: Nodes,
    { operationMs }: Deadlines,
    randomBytes: (count: number) => Uint8Array,
  ) {
    this.#nodes = nodes
    this.#attempts = new Attempts(nodes, operationMs, randomBytes)
    this.#operationMs = operationMs
    this.#randomBytes = randomBytes
    this.#tokens = new TokenCache((hash) => this.#lookUpToken(hash))
    const shared = { room: new WaitingRoom(), waitMaxMs: operationMs }
    this.#creates = new AccountBatches((account, batch) => this.#createAll(account, batch), {
      ...shared,
      textOf,
      keyOf: ({ id }) => id,
    })
    this.#deletes = new AccountBatches((account, batch) => this.#deleteAll(account, batch), {
      ...shared,
      textOf: () => rowTextMin,
      keyOf: (id) => id,
    })
  }

  async createPlant(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
    const endMs = performance.now() + this.#operationMs
    do {
      if (await this.#creates.submit(account, plant)) return undefined
      const inTheWay = await this.#findPlant(account, plant.id)
      if (inTheWay !== undefined) return inTheWay
    } while (performance.now() < endMs)
    throw nothingDone(new Error('the plant in the way was gone each time it was looked at'))
  }

  async deletePlant(account: string, id: bigint): Promise<boolean> {
    const deleted = await this.#deletes.submit(account, id)
    if (deleted === 'unknown')
      throw writeUncertain(
        new Error('the plant is gone; an attempt that was cut off may have removed it'),
      )
    return deleted
  }

  listPlants(account: string, range: PlantRange): Promise<Page> {
    return this.#page(statements.listPlants, account, range)
  }

  async keptPlants(account: string, range: PlantRange): Promise<Page<KeptPlant>> {
    const { plants, more } = await this.#page(statements.keptPlants, account, range)
    return { plants: plants.map(keptPlantOf), more }
  }

  async countPlants(): Promise<number> {
    const [row] = await this.#attempts.read(statements.countPlants, [])
    return Number(row?.['plants'])
  }

  async nthPlantId(
    account: string,
    after: bigint | undefined,
    n: number,
  ): Promise<bigint | undefined> {
    if (after === idMax) return undefined
    const [row] = await this.#attempts.read(statements.nthPlantId, [
      account,
      firstAfter(after),
      n - 1,
    ])
    return row?.['id'] as bigint | undefined
  }

  async issueToken(token: Token, hash: TokenHash): Promise<void> {
    await this.#attempts.write(statements.issueToken, [hash, ...tokenValues(token)])
  }

  async issueFirstToken(token: Token, hash: TokenHash): Promise<boolean> {
    const { rows, uncertain } = await this.#attempts.write(statements.issueFirstToken, [
      hash,
      ...tokenValues(token),
    ])
    if (rows.length === 1) return true
    if (!uncertain || (await this.#lookUpToken(hash)) === undefined) return false
    await this.issueToken(token, hash)
    return true
  }

  findToken(hash: TokenHash): Answer<Token | undefined> {
    return this.#tokens.find(hash)
  }

  async listTokens(account?: string): Promise<readonly Token[]> {
    const rows = await this.#attempts.read(statements.listTokens, [account ?? null])
    return rows
      .map(tokenOf)
      .sort((one, other) => one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1))
  }

  async keptTokens({
    after = hashMin,
    upTo = hashMax,
    limit,
  }: TokenRange): Promise<readonly KeptToken[]> {
    const rows = await this.#attempts.read(statements.keptTokens, [after, upTo, limit])
    return rows.map((row) => ({ ...tokenOf(row), hash: row['hash'] as TokenHash }))
  }

  async hasTokens(): Promise<boolean> {
    return (await this.#attempts.read(statements.anyToken, [])).length > 0
  }

  async revokeToken(id: string, nowMs: number): Promise<Token | undefined> {
    const { rows } = await this.#attempts.write(statements.revokeToken, [id, nowMs])
    const [revoked] = rows.map(tokenOf)
    if (revoked !== undefined) this.#tokens.update(id, () => revoked)
    return revoked
  }

  async noteTokenUse(id: string, usedAtMs: number): Promise<void> {
    // Remembered at once, so that the requests that follow do not write it again.
    this.#tokens.update(id, (token) => ({ ...token, lastUsedAtMs: usedAtMs }))
    await this.#attempts.write(statements.noteTokenUse, [id, usedAtMs])
  }

  async ready(): Promise<void> {
    await this.#attempts.probe(statements.probe, ['', 0n])
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await Promise.all([this.#creates.finish(), this.#deletes.finish()])
    await this.#nodes.close()
  }

  /**
   * Whether each create made its plant: its row is there and carries our random number. In one
   * order of ids, so that processes do not lock each other out.
   */
  async #createAll(account: string, batch: readonly KeptPlant[]): Promise<readonly boolean[]> {
    const random = Buffer.from(this.#randomBytes(8 * batch.length))
    const creates = batch.map((plant, index) => ({
      ...plant,
      op: random.readBigInt64LE(8 * index),
    }))
    const sorted = creates.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    const { rows } = await this.#attempts.write(statements.createPlants, [
      account,
      sorted.map(({ id }) => id),
      sorted.map(({ name }) => name),
      sorted.map(({ tag }) => tag),
      sorted.map(({ idempotencyKey }) => idempotencyKey),
      sorted.map(({ op }) => op),
    ])
    const ours = new Set(rows.map(({ op }) => op))
    return creates.map(({ op }) => ours.has(op))
  }

  /**
   * What became of each delete. After an attempt whose answer was lost, a plant that is not there
   * may have been removed by it, or never have been.
   */
  async #deleteAll(account: string, batch: readonly bigint[]): Promise<readonly Deleted[]> {
    const { rows, uncertain } = await this.#attempts.write(statements.deletePlants, [
      account,
      batch,
    ])
    const deleted = new Set(rows.map(({ id }) => id))
    return batch.map((id) => deleted.has(id) || (uncertain && 'unknown'))
  }

  async #findPlant(account: string, id: bigint): Promise<KeptPlant | undefined> {
    const [row] = await this.#attempts.read(statements.findPlant, [account, id])
    return row === undefined ? undefined : keptPlantOf(row as unknown as IdentifiedPlant)
  }

  async #page(statement: Statement, account: string, range: PlantRange): Promise<Page> {
    const { after, upTo = idMax, limit, textMax = pageTextMax } = range
    if (after === idMax) return { plants: [], more: false }
    const rows = await this.#attempts.read(statement, [
      account,
      firstAfter(after),
      upTo,
      limit + 1,
      textMax,
    ])
    const more = rows.length > limit || rows.at(-1)?.['more'] === true
    return { plants: rows.slice(0, limit) as unknown as readonly IdentifiedPlant[], more }
  }

  async #lookUpToken(hash: TokenHash): Promise<Token | undefined> {
    const [row] = await this.#attempts.read(statements.findToken, [hash])
    return row === undefined ? undefined : tokenOf(row)
  }
}

function textOf({ name, tag, idempotencyKey }: KeptPlant): number {
  return rowTextMin + name.length + (tag?.length ?? 0) + (idempotencyKey?.length ?? 0)
}

/** A row of a plant, with all its columns. */
function keptPlantOf(row: IdentifiedPlant): KeptPlant {
  const {
    id,
    name,
    tag,
    idempotency_key: idempotencyKey,
  } = row as IdentifiedPlant & { readonly idempotency_key: string | null }
  return { id, name, tag, idempotencyKey }
}
