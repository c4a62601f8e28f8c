// The plants of a PostgreSQL store.
//
// Writes that come at the same time share a statement, whatever their accounts, so that a thousand
// accounts with one writer each cost the database no more than one account with a thousand. There
// are two groups of accounts rather than one, so that a statement that stands still holds up half of
// them. If the database spreads accounts over nodes, as Citus does, each account is a group of its
// own: a statement on several nodes is slower than several statements.
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
// in its group delete it, some at a time. The time is that of the process that began the batch, and
// comes in the key before the number, so that old rows are found without an index of their own. The
// column `account` holds the name of the group. The last rows of a group stay until it writes again.
import { crc32 } from 'node:zlib'
import type { Clock } from '../../clock.ts'
import { type IdentifiedPlant, type KeptPlant, textLength } from '../../domain/plant.ts'
import { type PlantPage, type PlantRange, type Plants, pageTextMax } from '../../domain/store.ts'
import { CommitGroups, WriteQuota } from '../groupCommit.ts'
import type { Committed } from '../location.ts'
import { createLength, firstAfter, idMax, insertOrFind, writeLengthMin } from '../plants.ts'
import type { Attempts } from './attempts.ts'
import type { Engine } from './schema.ts'
import { type Statement, statements } from './statements.ts'

/** How long the row of a batch is kept at least. */
const batchKnownMs = 60 * 60_000
/** One batch in so many looks for old ones, of which it deletes up to 100. */
const batchesPerLook = 50n
/** How many batches of creates, and of deletes, may be under way at once. */
const groupCount = 2
/** Text that each plant of a page may have in any case, in bytes. */
const shareMinBytes = 1024

export class PostgresPlants implements Plants {
  readonly #attempts: Attempts
  readonly #engine: Engine
  readonly #randomBytes: (count: number) => Uint8Array
  readonly #clock: Clock
  readonly #committed: Committed | undefined
  readonly #quota = new WriteQuota()
  /** How this engine takes a batch. */
  readonly #batches: { readonly create: Statement; readonly delete: Statement }
  readonly #creates: CommitGroups<Create, boolean>
  readonly #deletes: CommitGroups<Write, boolean>

  constructor(
    attempts: Attempts,
    engine: Engine,
    operationMs: number,
    randomBytes: (count: number) => Uint8Array,
    clock: Clock,
    committed: Committed | undefined,
  ) {
    this.#attempts = attempts
    this.#engine = engine
    this.#batches = engine.hasBatchFunctions
      ? { create: statements.createPlantsOnNode, delete: statements.deletePlantsOnNode }
      : { create: statements.createPlants, delete: statements.deletePlants }
    this.#randomBytes = randomBytes
    this.#clock = clock
    this.#committed = committed
    const shared = { clock, quota: this.#quota, waitMaxMs: operationMs }
    this.#creates = new CommitGroups<Create, boolean>(
      (group, batch) => this.#createAll(group, batch),
      {
        ...shared,
        lengthOf: createLength,
        keyOf,
      },
    )
    this.#deletes = new CommitGroups<Write, boolean>(
      (group, batch) => this.#deleteAll(group, batch),
      {
        ...shared,
        lengthOf: () => writeLengthMin,
        keyOf,
      },
    )
  }

  create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
    return insertOrFind(
      () => this.#creates.submit(this.#groupOf(account), account, { account, ...plant }),
      async () => {
        const [row] = await this.#attempts.read(statements.findPlant, [account, plant.id])
        return row === undefined ? undefined : keptPlantOf(row)
      },
      this.#clock,
    )
  }

  delete(account: string, id: bigint): Promise<boolean> {
    return this.#deletes.submit(this.#groupOf(account), account, { account, id })
  }

  /**
   * A sum over the texts costs as much as the list. So plants come without one, and those with much
   * text without their names. Only if there is such a plant, the sum is asked for.
   */
  async list(account: string, range: PlantRange): Promise<PlantPage> {
    const { limit, textMax = pageTextMax } = range
    const share = Math.max(Math.floor(textMax / (limit + 1)), shareMinBytes)
    const page = await this.#page(statements.listPlants, account, { ...range, textMax: share })
    const isLong = page.plants.some(({ name }) => name === null)
    return isLong ? this.#page(statements.listLongPlants, account, range) : upToText(page, textMax)
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
  async count(account?: string): Promise<number> {
    const [row] =
      account === undefined
        ? await this.#attempts.read(statements.countPlants, [])
        : await this.#attempts.read(statements.countPlantsOf, [account])
    return Number(row?.['plants'])
  }

  /** As `waitingWrites` of `Store`. */
  waitingWrites(): number {
    return this.#quota.writes
  }

  /** Resolves when every write that was asked for is settled. */
  async finish(): Promise<void> {
    await Promise.all([this.#creates.finish(), this.#deletes.finish()])
  }

  /** The accounts of a group share batches. */
  #groupOf(account: string): string {
    return this.#engine.relaysStatements ? account : String(crc32(account) % groupCount)
  }

  /** Whether each create made its plant. */
  #createAll(group: string, batch: readonly Create[]): Promise<readonly boolean[]> {
    return this.#writeOnce(this.#batches.create, group, batch, (sorted) => [
      sorted.map(({ name }) => name),
      sorted.map(({ tag }) => tag),
      sorted.map(({ idempotencyKey }) => idempotencyKey),
    ])
  }

  /** Whether each delete removed its plant. */
  #deleteAll(group: string, batch: readonly Write[]): Promise<readonly boolean[]> {
    return this.#writeOnce(this.#batches.delete, group, batch, () => [])
  }

  /** Carries out a batch, and resolves to whether each write was done. */
  async #writeOnce<Each extends Write>(
    statement: Statement,
    group: string,
    batch: readonly Each[],
    textsOf: (writes: readonly Each[]) => readonly unknown[],
  ): Promise<readonly boolean[]> {
    const number = Buffer.from(this.#randomBytes(8)).readBigInt64LE()
    const nowMs = this.#clock.wallMs()
    const startMs = this.#clock.monotonicMs()
    // In one order, so that processes do not lock each other out.
    const sorted = batch.toSorted(inOrder)
    const accounts = sorted.map(({ account }) => account)
    const [row] = await this.#attempts.writeOnce(
      statement,
      [group, nowMs, number],
      [
        // A function takes the group for the account of all.
        ...(this.#engine.hasBatchFunctions ? [] : [accounts]),
        sorted.map(({ id }) => id),
        ...textsOf(sorted),
      ],
    )
    this.#committed?.(batch.length, this.#clock.monotonicMs() - startMs)
    if (number % batchesPerLook === 0n)
      void this.#attempts
        .tryOnce(statements.forgetBatches, [group, nowMs - batchKnownMs])
        .catch(() => {})
    const outcome = row as { accounts?: string[] | null; done: string[] | null }
    const done = new Set(outcome.done?.map((id, n) => `${id} ${outcome.accounts?.[n] ?? group}`))
    return batch.map((write) => done.has(keyOf(write)))
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

/** A page without the plants after those whose text exceeds the bound. */
function upToText(page: PlantPage, textMax: number): PlantPage {
  let text = 0
  const end = page.plants.findIndex((plant) => {
    const isAfter = text > textMax
    text += textLength(plant)
    return isAfter
  })
  return end === -1 ? page : { plants: page.plants.slice(0, end), more: true }
}

/** What a delete needs. */
interface Write {
  readonly account: string
  readonly id: bigint
}

interface Create extends Write, KeptPlant {}

function keyOf({ id, account }: Write): string {
  return `${id} ${account}`
}

function inOrder(one: Write, other: Write): number {
  if (one.account !== other.account) return one.account < other.account ? -1 : 1
  return one.id < other.id ? -1 : 1
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
