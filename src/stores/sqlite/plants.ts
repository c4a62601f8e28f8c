// The plants of an SQLite store.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { IdentifiedPlant, KeptPlant } from '../../domain/plant.ts'
import { type Page, type PlantRange, type Plants, pageTextMax } from '../../domain/store.ts'
import { nothingDone } from '../failures.ts'
import { firstAfter, idMax } from '../tokenRow.ts'
import { plannedInteger, plannedText, reading, type SendWrite } from './statements.ts'

/** How often a create is tried again if the plant in its way is gone when it is looked at. */
const createRoundsMax = 10

/** Plants with their texts, which the long ones keep in a table of their own (decision 2). */
const columns =
  'id, iif(long_text is null, short_name, name) as name, iif(long_text is null, short_tag, tag) as tag'
const table = 'plants left join long_texts on number = long_text'

export class SqlitePlants implements Plants {
  readonly #write: SendWrite
  readonly #plant: StatementSync
  readonly #list: StatementSync
  readonly #keptList: StatementSync
  readonly #count: StatementSync
  readonly #nthId: StatementSync

  constructor(database: DatabaseSync, write: SendWrite) {
    this.#write = write
    const range = `where account = ${plannedText} and id between ? and ? order by id limit ${plannedInteger}`
    const kept = `select ${columns}, idempotency_key as idempotencyKey from ${table}`
    this.#plant = database.prepare(
      `${kept} where account = ${plannedText} and id = ${plannedInteger}`,
    )
    this.#list = database.prepare(`select ${columns} from ${table} ${range}`)
    this.#keptList = database.prepare(`${kept} ${range}`)
    this.#count = database.prepare('select count(*) as plants from plants')
    this.#nthId = database.prepare(
      `select id from plants where account = ${plannedText} and id >= ? order by id limit 1 offset ${plannedInteger}`,
    )
    for (const statement of [this.#plant, this.#list, this.#keptList, this.#nthId])
      statement.setReadBigInts(true)
  }

  async create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
    const { id, name, tag, idempotencyKey } = plant
    for (let round = 0; round < createRoundsMax; round += 1) {
      if (
        (await this.#write(
          account,
          'createPlant',
          account,
          String(id),
          name,
          tag,
          idempotencyKey,
        )) === 1
      )
        return undefined
      const inTheWay = reading(() => this.#plant.get(account, id)) as KeptPlant | undefined
      if (inTheWay !== undefined) return { ...inTheWay }
    }
    throw nothingDone(new Error('the plant in the way was gone each time it was looked at'))
  }

  async delete(account: string, id: bigint): Promise<boolean> {
    return (await this.#write(account, 'deletePlant', account, String(id))) === 1
  }

  list(account: string, range: PlantRange): Page {
    return pageOf(this.#list, account, range)
  }

  /** As `list`, with all that is kept of each plant. */
  kept(account: string, range: PlantRange): Page<KeptPlant> {
    return pageOf(this.#keptList, account, range) as Page<KeptPlant>
  }

  count(): number {
    return (reading(() => this.#count.get()) as { plants: number }).plants
  }

  nthId(account: string, after: bigint | undefined, n: number): bigint | undefined {
    if (after === idMax) return undefined
    const row = reading(() => this.#nthId.get(account, firstAfter(after), n - 1))
    return (row as { id: bigint } | undefined)?.id
  }
}

/**
 * Up to `limit` plants of a statement's rows, of which there may be one more: it says that others
 * follow.
 */
function pageOf(
  statement: StatementSync,
  account: string,
  { after, upTo = idMax, limit, textMax = pageTextMax }: PlantRange,
): Page {
  if (after === idMax) return { plants: [], more: false }
  return reading(() => {
    const plants: IdentifiedPlant[] = []
    let text = 0
    const rows = statement.iterate(account, firstAfter(after), upTo, limit + 1) as Iterable<unknown>
    for (const row of rows as Iterable<IdentifiedPlant>) {
      if (plants.length === limit || text > textMax) return { plants, more: true }
      text += row.name.length + (row.tag?.length ?? 0)
      plants.push(row)
    }
    return { plants, more: false }
  })
}
