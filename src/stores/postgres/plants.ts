// The plants of a PostgreSQL store: writes share a statement with the others of their account.
//
// The answer to a write may be lost: the network falls silent, or the server dies after its commit.
// Then nobody here knows whether the write was done, and yet one answer is owed. So it is sent
// again until an answer comes (attempts.ts). Meanwhile others may have created or deleted the same
// plant, and an attempt that was given up may still arrive. If a write took effect twice, it would
// undo what was acknowledged to others in between.
//
// So a batch of writes has a number, which is random and the same in all its attempts. The
// statement that does the writes also keeps a row in the table `batches`: the number, and for which
// ids the writes were done. Both are done or neither is. The number is part of the key of that
// table, so a further attempt waits for one that is still at work, fails if that was done, and is
// undone as a whole, however late it comes. What became of the writes is then read from the row.
//
// An attempt may be done before it has reached the standbys. So the row is not only read but
// written once more: the commit of that write waits for the standbys, and so for the first. For the
// same reason a repeat with an idempotency key, which finds its plant, needs nothing more: the row
// of its own batch is committed after that plant.
//
// A row is needed for as long as an attempt may still arrive. After an hour the batches that follow
// delete it, some at a time. The time is that of the process that began the batch, and comes first
// in the key, so that old rows are found without an index of their own. The last rows of an account
// stay until it writes again.
import type { Clock } from '../../clock.ts'
import type { IdentifiedPlant, KeptPlant } from '../../domain/plant.ts'
import { type PlantPage, type PlantRange, type Plants, pageTextMax } from '../../domain/store.ts'
import { AccountBatches, WriteQuota } from '../groupCommit.ts'
import { createLength, firstAfter, idMax, insertOrFind, writeLengthMin } from '../plants.ts'
import type { Attempts } from './attempts.ts'
import { type Statement, statements } from './statements.ts'

/** How long the row of a batch is kept at least. */
const batchKnownMs = 60 * 60_000
/** One batch in so many looks for old ones, of which it deletes up to 100. */
const batchesPerLook = 50n

export class PostgresPlants implements Plants {
  readonly #attempts: Attempts
  readonly #randomBytes: (count: number) => Uint8Array
  readonly #clock: Clock
  readonly #creates: AccountBatches<KeptPlant, boolean>
  readonly #deletes: AccountBatches<bigint, boolean>

  constructor(
    attempts: Attempts,
    operationMs: number,
    randomBytes: (count: number) => Uint8Array,
    clock: Clock,
  ) {
    this.#attempts = attempts
    this.#randomBytes = randomBytes
    this.#clock = clock
    const shared = { clock, quota: new WriteQuota(), waitMaxMs: operationMs }
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

  delete(account: string, id: bigint): Promise<boolean> {
    return this.#deletes.submit(account, id)
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

  /** Whether each create made its plant. */
  async #createAll(account: string, batch: readonly KeptPlant[]): Promise<readonly boolean[]> {
    // In one order of ids, so that processes do not lock each other out.
    const sorted = batch.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    const created = await this.#writeOnce(statements.createPlants, account, [
      sorted.map(({ id }) => id),
      sorted.map(({ name }) => name),
      sorted.map(({ tag }) => tag),
      sorted.map(({ idempotencyKey }) => idempotencyKey),
    ])
    return batch.map(({ id }) => created.has(id))
  }

  /** Whether each delete removed its plant. */
  async #deleteAll(account: string, batch: readonly bigint[]): Promise<readonly boolean[]> {
    const deleted = await this.#writeOnce(statements.deletePlants, account, [batch])
    return batch.map((id) => deleted.has(id))
  }

  /** Carries out a batch, and resolves to the ids for which it was done. */
  async #writeOnce(
    statement: Statement,
    account: string,
    values: readonly unknown[],
  ): Promise<ReadonlySet<bigint>> {
    const number = Buffer.from(this.#randomBytes(8)).readBigInt64LE()
    const nowMs = this.#clock.wallMs()
    const [row] = await this.#attempts.writeOnce(statement, [account, nowMs, number], values)
    if (number % batchesPerLook === 0n)
      void this.#attempts
        .tryOnce(statements.forgetBatches, [account, nowMs - batchKnownMs])
        .catch(() => {})
    return new Set(((row?.['done'] ?? []) as string[]).map(BigInt))
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
