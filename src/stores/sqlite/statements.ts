// The statements that an SQLite store prepares when it is opened, under the names that those of
// PostgreSQL have. Reads run on the HTTP thread, writes on the writer's (writer/thread.ts).
import { tokenColumns } from '../tokens.ts'
import { applicationId } from './schema.ts'

/**
 * Parameters that the query planner does not look into. Under ORDER BY, LIMIT or a left join it
 * bases its plan on the value of a bare `?`, and compiles the statement again each time one is
 * bound.
 */
const text = 'cast(? as text)'
const integer = 'cast(? as integer)'

/** Plants with their texts, which the long ones keep in a table of their own (decision 2). */
const columns =
  'id, iif(long_text is null, short_name, name) as name, iif(long_text is null, short_tag, tag) as tag'
const keptColumns = `${columns}, idempotency_key as idempotencyKey`
const table = 'plants left join long_texts on number = long_text'
const range = `where account = ${text} and id between ? and ? order by id limit ${integer}`

export const statements = {
  createPlant: 'insert into plants values (?, ?, ?, ?, ?, ?) on conflict do nothing',
  /** Keeps the text of a plant that is about to be created, unless its id is taken. */
  keepLongText: `insert into long_texts (name, tag)
    select ?, ? where not exists (select 1 from plants where account = ? and id = ?)`,
  findPlant: `select ${keptColumns} from ${table} where account = ${text} and id = ${integer}`,
  deletePlant: 'delete from plants where account = ? and id = ?',
  listPlants: `select ${columns} from ${table} ${range}`,
  nthPlantId: `select id from plants where account = ${text} and id >= ? order by id limit 1 offset ${integer}`,
  keptPlants: `select ${keptColumns} from ${table} ${range}`,
  countPlants: 'select count(*) as plants from plants',
  countPlantsOf: 'select count(*) as plants from plants where account = ?',

  issueToken: 'insert into tokens values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing',
  issueFirstToken:
    'insert into tokens select ?, ?, ?, ?, ?, ?, ?, ?, ? where not exists (select 1 from tokens)',
  findToken: `select ${tokenColumns} from tokens where hash = ?`,
  findTokenById: `select ${tokenColumns} from tokens where id = ?`,
  listTokens: `select ${tokenColumns} from tokens where account = ifnull(?, account) order by created_at_ms, id`,
  anyToken: 'select 1 from tokens limit 1',
  revokeToken: 'update tokens set revoked_at_ms = coalesce(revoked_at_ms, ?) where id = ?',
  countTokens: 'select count(*) as tokens from tokens',
  noteTokenUse: 'update tokens set last_used_at_ms = ? where id = ?',
  keptTokens: `select hash, ${tokenColumns} from tokens where hash > ? and hash <= ? order by hash limit ${integer}`,

  /** At most so many sentences on damage, or "ok". */
  integrity: 'pragma integrity_check(3)',
  /** How many long texts there are, how many plants ask for one, and how many of these find it. */
  longTexts: `select
    (select count(*) from long_texts) as texts,
    (select count(long_text) from plants) as asking,
    (select count(*) from plants join long_texts on number = long_text) as finding`,

  /** Changes nothing, but takes the write lock: shows that the file can be written to. */
  probe: 'delete from plants where false',
  /**
   * Writes what is there already, so that a commit has something to sync: shows that one succeeds.
   */
  tryCommit: `pragma application_id = ${applicationId}`,
  begin: 'begin immediate',
  commit: 'commit',
} as const
