// The plants of an SQLite store. Reads run on this thread, writes go through the channel to the
// writer.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import { type IdentifiedPlant, type KeptPlant, textLength } from '../../domain/plant.ts'
import { type PlantPage, type PlantRange, type Plants, pageTextMax } from '../../domain/store.ts'
import { firstAfter, idMax, insertOrFind } from '../plants.ts'
import { reading } from './connection.ts'
import { statements } from './statements.ts'
import type { SendWrite } from './writer/crossing.ts'

export class SqlitePlants implements Plants {
  readonly #write: SendWrite
  readonly #clock: Clock
  readonly #find: StatementSync
  readonly #list: StatementSync
  readonly #nthId: StatementSync
  readonly #kept: StatementSync
  readonly #count: StatementSync
  readonly #countOf: StatementSync

  constructor(database: DatabaseSync, write: SendWrite, clock: Clock) {
    this.#write = write
    this.#clock = clock
    this.#find = database.prepare(statements.findPlant)
    this.#list = database.prepare(statements.listPlants)
    this.#nthId = database.prepare(statements.nthPlantId)
    this.#kept = database.prepare(statements.keptPlants)
    this.#count = database.prepare(statements.countPlants)
    this.#countOf = database.prepare(statements.countPlantsOf)
    for (const statement of [this.#find, this.#list, this.#nthId, this.#kept])
      statement.setReadBigInts(true)
  }

  create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
    return insertOrFind(
      () => this.#write({ kind: 'createPlant', account, plant }),
      () => {
        const found = reading(() => this.#find.get(account, plant.id)) as KeptPlant | undefined
        return found === undefined ? undefined : { ...found }
      },
      this.#clock,
    )
  }

  async delete(account: string, id: bigint): Promise<boolean> {
    return (await this.#write({ kind: 'deletePlant', account, id })) === 1
  }

  list(account: string, range: PlantRange): PlantPage {
    return this.#page(this.#list, account, range)
  }

  nthId(account: string, after: bigint | undefined, n: number): bigint | undefined {
    if (after === idMax) return undefined
    const row = reading(() => this.#nthId.get(account, firstAfter(after), n - 1))
    return (row as { id: bigint } | undefined)?.id
  }

  /** As `plants` of `Copyable`. */
  kept(account: string, range: PlantRange): PlantPage<KeptPlant> {
    return this.#page(this.#kept, account, range) as PlantPage<KeptPlant>
  }

  /** As `countPlants` of `Copyable`. */
  count(account?: string): number {
    const row = reading(() =>
      account === undefined ? this.#count.get() : this.#countOf.get(account),
    )
    return (row as { plants: number }).plants
  }

  /** One row more than `limit` is asked for: it says that others follow. */
  #page(
    statement: StatementSync,
    account: string,
    { after, upTo = idMax, limit, textMax = pageTextMax }: PlantRange,
  ): PlantPage {
    if (after === idMax) return { plants: [], more: false }
    return reading(() => {
      const plants: IdentifiedPlant[] = []
      let text = 0
      const rows: Iterable<unknown> = statement.iterate(account, firstAfter(after), upTo, limit + 1)
      for (const row of rows as Iterable<IdentifiedPlant>) {
        if (plants.length === limit || text > textMax) return { plants, more: true }
        text += textLength(row)
        plants.push(row)
      }
      return { plants, more: false }
    })
  }
}
