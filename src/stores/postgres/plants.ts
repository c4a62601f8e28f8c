// The plants of a PostgreSQL store: writes share a statement with the others of their account.
//
// The answer to a write may be lost: the network falls silent, or the server dies after its commit.
// Then nobody here knows whether the write was done, and yet one answer is owed. So it is sent
// again until an answer comes (attempts.ts). Two things make that safe.
//
// The `op`. A create that was done and is sent again finds its own row in the way, and would call
// that a conflict. So each create carries a random number, the same in all its attempts, and its
// row keeps it. Whether a create made its plant is read off the rows that come back: its own number
// is among them. A row with that number is written once more, and not only read, because it may
// stand there before it has reached the standbys. The commit of the second write waits for them,
// and so for the first. A row with the same idempotency key is written once more for the same
// reason, but under its old number: that was another create, and it is looked up and answered as
// such.
//
// The fence. A write that was given up may still be on its way, in a network that is silent and not
// dead. It may arrive after a later attempt was done and acknowledged, and after others have
// deleted that plant: a late create would revive it, and a late delete would remove the plant that
// took its place. So each write carries the latest time at which it may begin, one second after it
// was sent, by the clock of the server, which each connection learns from its greeting
// (cluster/connection.ts). Past that time the condition of the statement divides by zero, and the
// statement fails by itself. The server gives up a statement of a request after 2.5 seconds. So
// after 3.5 seconds without an answer it is certain that a write that has not begun its commit
// never will, and only then is the next attempt made.
//
// A delete has no row left that could carry a number. If its answer was lost and the next attempt
// finds nothing, nobody can tell whether the first removed the plant or there never was one. Then
// the outcome is unknown, and the answer says so. What all this leaves open is in decision 9.
import type { Clock } from '../../clock.ts'
import type { IdentifiedPlant, KeptPlant } from '../../domain/plant.ts'
import { type PlantPage, type PlantRange, type Plants, pageTextMax } from '../../domain/store.ts'
import { writeUncertain } from '../failures.ts'
import { AccountBatches, WaitingRoom } from '../groupCommit.ts'
import { createLength, firstAfter, idMax, insertOrFind, writeLengthMin } from '../plants.ts'
import type { Attempts } from './attempts.ts'
import { type Statement, statements } from './statements.ts'

/** What became of a delete: whether the plant was there, or that nobody can tell. */
type Deleted = boolean | 'unknown'

export class PostgresPlants implements Plants {
  readonly #attempts: Attempts
  readonly #randomBytes: (count: number) => Uint8Array
  readonly #clock: Clock
  readonly #creates: AccountBatches<KeptPlant, boolean>
  readonly #deletes: AccountBatches<bigint, Deleted>

  constructor(
    attempts: Attempts,
    operationMs: number,
    randomBytes: (count: number) => Uint8Array,
    clock: Clock,
  ) {
    this.#attempts = attempts
    this.#randomBytes = randomBytes
    this.#clock = clock
    const shared = { clock, room: new WaitingRoom(), waitMaxMs: operationMs }
    this.#creates = new AccountBatches((account, batch) => this.#createAll(account, batch), {
      ...shared,
      lengthOf: createLength,
      keyOf: ({ id }) => id,
    })
    this.#deletes = new AccountBatches((account, batch) => this.#deleteAll(account, batch), {
      ...shared,
      lengthOf: () => writeLengthMin,
      keyOf: (id) => id,
    })
  }

  create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
    return insertOrFind(
      () => this.#creates.submit(account, plant),
      async () => {
        const [row] = await this.#attempts.read(statements.findPlant, [account, plant.id])
        return row === undefined ? undefined : keptPlantOf(row)
      },
      this.#clock,
    )
  }

  async delete(account: string, id: bigint): Promise<boolean> {
    const deleted = await this.#deletes.submit(account, id)
    if (deleted === 'unknown')
      throw writeUncertain(
        new Error('the plant is gone; an attempt that was cut off may have removed it'),
      )
    return deleted
  }

  list(account: string, range: PlantRange): Promise<PlantPage> {
    return this.#page(statements.listPlants, account, range)
  }

  async nthId(account: string, after: bigint | undefined, n: number): Promise<bigint | undefined> {
    if (after === idMax) return undefined
    const values = [account, firstAfter(after), n - 1]
    const [row] = await this.#attempts.read(statements.nthPlantId, values)
    return row?.['id'] as bigint | undefined
  }

  /** As `plants` of `Copyable`. */
  async kept(account: string, range: PlantRange): Promise<PlantPage<KeptPlant>> {
    const { plants, more } = await this.#page(statements.keptPlants, account, range)
    return { plants: plants.map(keptPlantOf), more }
  }

  /** As `countPlants` of `Copyable`. */
  async count(): Promise<number> {
    const [row] = await this.#attempts.read(statements.countPlants, [])
    return Number(row?.['plants'])
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

  /** Asks for one plant more than `limit`: it says that others follow. */
  async #page(
    statement: Statement,
    account: string,
    { after, upTo = idMax, limit, textMax = pageTextMax }: PlantRange,
  ): Promise<PlantPage> {
    if (after === idMax) return { plants: [], more: false }
    const values = [account, firstAfter(after), upTo, limit + 1, textMax]
    const rows = await this.#attempts.read(statement, values)
    const more = rows.length > limit || rows.at(-1)?.['more'] === true
    return { plants: rows.slice(0, limit) as unknown as readonly IdentifiedPlant[], more }
  }
}

/** The plant in a row with all its columns. */
function keptPlantOf(row: object): KeptPlant {
  const {
    id,
    name,
    tag,
    idempotency_key: idempotencyKey,
  } = row as IdentifiedPlant & { readonly idempotency_key: string | null }
  return { id, name, tag, idempotencyKey }
}
