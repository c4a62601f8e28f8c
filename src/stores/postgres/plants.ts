// The plants of a PostgreSQL store.
import type { IdentifiedPlant, KeptPlant } from '../../domain/plant.ts'
import { type Page, type PlantRange, type Plants, pageTextMax } from '../../domain/store.ts'
import { nothingDone, writeUncertain } from '../failures.ts'
import { WaitingRoom } from '../groupCommit.ts'
import { firstAfter, idMax } from '../tokenRow.ts'
import { AccountBatches } from './accountBatches.ts'
import type { Attempts } from './attempts.ts'
import { type Statement, statements } from './statements.ts'

/** What a row takes at least, as text. */
const rowTextMin = 50

/** What became of a delete: whether the plant was there, or that nobody can tell. */
type Deleted = boolean | 'unknown'

export class PostgresPlants implements Plants {
  readonly #attempts: Attempts
  readonly #operationMs: number
  readonly #randomBytes: (count: number) => Uint8Array
  readonly #creates: AccountBatches<KeptPlant, boolean>
  readonly #deletes: AccountBatches<bigint, Deleted>

  constructor(attempts: Attempts, operationMs: number, randomBytes: (count: number) => Uint8Array) {
    this.#attempts = attempts
    this.#operationMs = operationMs
    this.#randomBytes = randomBytes
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

  async create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
    const endMs = performance.now() + this.#operationMs
    do {
      if (await this.#creates.submit(account, plant)) return undefined
      const inTheWay = await this.#findPlant(account, plant.id)
      if (inTheWay !== undefined) return inTheWay
    } while (performance.now() < endMs)
    throw nothingDone(new Error('the plant in the way was gone each time it was looked at'))
  }

  async delete(account: string, id: bigint): Promise<boolean> {
    const deleted = await this.#deletes.submit(account, id)
    if (deleted === 'unknown')
      throw writeUncertain(
        new Error('the plant is gone; an attempt that was cut off may have removed it'),
      )
    return deleted
  }

  list(account: string, range: PlantRange): Promise<Page> {
    return this.#page(statements.listPlants, account, range)
  }

  /** As `list`, with all that is kept of each plant. */
  async kept(account: string, range: PlantRange): Promise<Page<KeptPlant>> {
    const { plants, more } = await this.#page(statements.keptPlants, account, range)
    return { plants: plants.map(keptPlantOf), more }
  }

  async count(): Promise<number> {
    const [row] = await this.#attempts.read(statements.countPlants, [])
    return Number(row?.['plants'])
  }

  async nthId(account: string, after: bigint | undefined, n: number): Promise<bigint | undefined> {
    if (after === idMax) return undefined
    const [row] = await this.#attempts.read(statements.nthPlantId, [
      account,
      firstAfter(after),
      n - 1,
    ])
    return row?.['id'] as bigint | undefined
  }

  /** Resolves when every write that was asked for is settled. */
  async finish(): Promise<void> {
    await Promise.all([this.#creates.finish(), this.#deletes.finish()])
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
