// The store on SQLite: reads on the caller's thread, which the page cache answers, and writes in
// batches on a thread of their own, which waits for the disk.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { Failure } from '../../domain/failure.ts'
import type { IdentifiedPlant, KeptPlant } from '../../domain/plant.ts'
import {
  type Page,
  type PlantRange,
  pageTextMax,
  type Store,
  type TokenRange,
} from '../../domain/store.ts'
import { hashMax, hashMin, type KeptToken, type Token, type TokenHash } from '../../domain/token.ts'
import { nothingDone } from '../failures.ts'
import { type Commit, GroupCommit, WaitingRoom } from '../groupCommit.ts'
import { firstAfter, idMax, tokenColumns, tokenOf, tokenValues } from '../tokenRow.ts'
import { closingOnError, connect, onceUnlocked, refusal } from './connection.ts'
import {
  type FileUse,
  findLoss,
  type Place,
  placeOfFile,
  placeOfLog,
  prepareFile,
  refuseLostLog,
} from './file.ts'
import { migrate } from './schema.ts'
import type { Outcome, Write } from './writer/batch.ts'
import { type Channel, commitThrough, textOf } from './writer/channel.ts'
import { writerThread } from './writerThread.ts'

/** Writes of the operator and of the store itself are of no account. */
const noAccount = ''

/** How often a create is tried again if the plant in its way is gone when it is looked at. */
const createRoundsMax = 10

/**
 * Parameters that the query planner does not look into. Under ORDER BY, LIMIT or a left join it
 * bases its plan on the value of a bare `?`, and compiles the statement again each time one is
 * bound.
 */
const plannedText = 'cast(? as text)'
const plannedInteger = 'cast(? as integer)'

/** Plants with their texts, which the long ones keep in a table of their own (decision 2). */
const plantColumns =
  'id, iif(long_text is null, short_name, name) as name, iif(long_text is null, short_tag, tag) as tag'
const plants = 'plants left join long_texts on number = long_text'

/** While commits fail, one is tried this often. */
const retryMs = 1000

export interface SqliteUse extends FileUse {
  /** Told of what the operator should look at. */
  readonly warn?: (message: string, cause: unknown) => void
}

/** Opens the store in a file. Rejects with Refused if it cannot serve. */
export async function openSqliteStore(path: string, use: SqliteUse): Promise<Store> {
  try {
    prepareFile(path, use)
    await refuseLostLog(path)
    const file = placeOfFile(path)
    const database = connect(path)
    return await closingOnError(database, async () => {
      await onceUnlocked(database, () => migrate(database))
      const place = [...file, ...placeOfLog(path)]
      const writer = await writerThread({ path, place }, use.warn ?? (() => {}))
      return new SqliteStore(database, writer, place)
    })
  } catch (error) {
    throw refusal(path, error)
  }
}

export class SqliteStore implements Store {
  readonly tokenDelayMs = 0
  readonly #database: DatabaseSync
  readonly #channel: Channel
  readonly #place: Place
  readonly #commit: Commit<Write, Outcome>
  readonly #writes: GroupCommit<Write, Outcome>
  readonly #plant: StatementSync
  readonly #list: StatementSync
  readonly #keptList: StatementSync
  readonly #count: StatementSync
  readonly #nthId: StatementSync
  readonly #token: StatementSync
  readonly #tokenById: StatementSync
  readonly #tokens: StatementSync
  readonly #keptTokens: StatementSync
  readonly #anyToken: StatementSync
  /** Why the last commit failed, until one has succeeded. */
  #failing: unknown
  #retry: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  constructor(database: DatabaseSync, channel: Channel, place: Place) {
    this.#database = database
    this.#place = place
    this.#channel = channel
    this.#commit = commitThrough(channel)
    this.#writes = new GroupCommit((batch) => this.#commitWatched(batch), {
      room: new WaitingRoom(),
      textOf,
    })
    const range = `where account = ${plannedText} and id between ? and ? order by id limit ${plannedInteger}`
    const kept = `select ${plantColumns}, idempotency_key as idempotencyKey from ${plants}`
    this.#plant = database.prepare(
      `${kept} where account = ${plannedText} and id = ${plannedInteger}`,
    )
    this.#list = database.prepare(`select ${plantColumns} from ${plants} ${range}`)
    this.#keptList = database.prepare(`${kept} ${range}`)
    this.#count = database.prepare('select count(*) as plants from plants')
    this.#nthId = database.prepare(
      `select id from plants where account = ${plannedText} and id >= ? order by id limit 1 offset ${plannedInteger}`,
    )
    for (const statement of [this.#plant, this.#list, this.#keptList, this.#nthId])
      statement.setReadBigInts(true)
    const tokens = `select ${tokenColumns} from tokens`
    this.#token = database.prepare(`${tokens} where hash = ?`)
    this.#tokenById = database.prepare(`${tokens} where id = ?`)
    this.#keptTokens = database.prepare(
      `select hash, ${tokenColumns} from tokens where hash > ? and hash <= ? order by hash limit ${plannedInteger}`,
    )
    this.#anyToken = database.prepare('select 1 from tokens limit 1')
    this.#tokens = database.prepare(
      `${tokens} where account = ifnull(?, account) order by created_at_ms, id`,
    )
  }

  async createPlant(account: string, plant: KeptPlant): Promise<KeptPlant | undefined> {
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

  async deletePlant(account: string, id: bigint): Promise<boolean> {
    return (await this.#write(account, 'deletePlant', account, String(id))) === 1
  }

  listPlants(account: string, range: PlantRange): Page {
    return pageOf(this.#list, account, range)
  }

  keptPlants(account: string, range: PlantRange): Page<KeptPlant> {
    return pageOf(this.#keptList, account, range) as Page<KeptPlant>
  }

  countPlants(): number {
    return (reading(() => this.#count.get()) as { plants: number }).plants
  }

  nthPlantId(account: string, after: bigint | undefined, n: number): bigint | undefined {
    if (after === idMax) return undefined
    const row = reading(() => this.#nthId.get(account, firstAfter(after), n - 1))
    return (row as { id: bigint } | undefined)?.id
  }

  async issueToken(token: Token, hash: TokenHash): Promise<void> {
    const issued = await this.#write(token.account, 'issueToken', ...tokenParameters(token, hash))
    if (issued !== 1)
      throw new Failure(
        'store-unavailable',
        'A token with this id is there already; nothing was done, try again.',
      )
  }

  async issueFirstToken(token: Token, hash: TokenHash): Promise<boolean> {
    return (
      (await this.#write(token.account, 'issueFirstToken', ...tokenParameters(token, hash))) === 1
    )
  }

  findToken(hash: TokenHash): Token | undefined {
    return tokenOrNone(reading(() => this.#token.get(hash)))
  }

  listTokens(account?: string): readonly Token[] {
    return reading(() => this.#tokens.all(account ?? null)).map(tokenOf)
  }

  keptTokens({ after = hashMin, upTo = hashMax, limit }: TokenRange): readonly KeptToken[] {
    const rows = reading(() => this.#keptTokens.all(after, upTo, limit)) as unknown as {
      readonly hash: TokenHash
    }[]
    return rows.map((row) => ({ ...tokenOf(row), hash: row.hash }))
  }

  hasTokens(): boolean {
    return reading(() => this.#anyToken.get()) !== undefined
  }

  async revokeToken(id: string, nowMs: number): Promise<Token | undefined> {
    await this.#write(noAccount, 'revokeToken', nowMs, id)
    return tokenOrNone(reading(() => this.#tokenById.get(id)))
  }

  async noteTokenUse(id: string, usedAtMs: number): Promise<void> {
    await this.#write(noAccount, 'noteTokenUse', usedAtMs, id)
  }

  async ready(): Promise<void> {
    // Asking would say nothing new, and would wait behind what fails.
    if (this.#failing !== undefined) throw nothingDone(this.#failing)
    this.nthPlantId(noAccount, undefined, 1)
    await this.#write(noAccount, 'probe')
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.#writes.finish()
    clearTimeout(this.#retry)
    await this.#channel.close()
    // As in writer.ts: the log by that name may be another file's.
    if (findLoss(this.#place) === undefined) this.#database.close()
  }

  #write(account: string, ...write: Write): Promise<Outcome> {
    return this.#writes.submit(account, write)
  }

  /**
   * Remembers a failure until a commit has succeeded, and tries one by itself, so that no client
   * must.
   */
  async #commitWatched(batch: readonly Write[]): Promise<readonly Outcome[]> {
    try {
      const outcomes = await this.#commit(batch)
      // What changed nothing had nothing to commit.
      if (outcomes.some((changes) => changes > 0)) this.#failing = undefined
      return outcomes
    } catch (failure) {
      this.#failing = (failure as Failure).cause
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined
        this.#write(noAccount, 'tryCommit').catch(() => {})
      }, retryMs).unref()
      throw failure
    }
  }
}

/** A read that fails says so in the domain's terms: nothing is lost, and a retry may succeed. */
function reading<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw nothingDone(cause)
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

/** The token that a row may be; a row that is not there is none. */
function tokenOrNone(row: unknown): Token | undefined {
  return row === undefined ? undefined : tokenOf(row)
}

/** A blob travels to the writer in hexadecimal. */
function tokenParameters(token: Token, hash: TokenHash): [string, ...(string | number | null)[]] {
  return [Buffer.from(hash).toString('hex'), ...tokenValues(token)]
}
