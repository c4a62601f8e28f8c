// The tables, as numbered steps forward. Steps are taken by a command, because starters that race
// to create tables fail; a service only looks at the version.
import { DatabaseError } from 'pg'
import type { Clock } from '../../clock.ts'
import { Unusable } from '../failures.ts'
import { tokenColumns } from '../tokens.ts'
import type { Nodes } from './cluster/nodes.ts'
import { statements } from './statements.ts'

/** The functions that Citus has, as it knows them apart from others of the same names. */
const createFunction = 'plants_create_batch(text, bigint, bigint, bigint[], text[], text[], text[])'
const deleteFunction = 'plants_delete_batch(text, bigint, bigint, bigint[])'

/**
 * Step n takes a database from version n to n + 1. Each statement may be repeated. A step that has
 * been released is never changed.
 */
const steps: readonly {
  readonly tables: readonly string[]
  /** How the tables are spread over the nodes of Citus, if that extension is there. */
  readonly distribution: readonly string[]
}[] = [
  {
    tables: [
      `create table if not exists plants_schema (
  version bigint not null primary key
)`,
      `create table if not exists plants (
  account text not null,
  id bigint not null,
  name text not null,
  tag text,
  idempotency_key text,
  op bigint not null,
  primary key (account, id)
)`,
      `create table if not exists tokens (
  hash bytea not null primary key,
  id text not null unique,
  account text not null,
  label text not null,
  scopes text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint,
  revoked_at_ms bigint,
  last_used_at_ms bigint,
  is_first boolean unique
)`,
    ],
    distribution: [
      distributed('plants_schema', "create_reference_table('plants_schema')"),
      distributed('plants', "create_distributed_table('plants', 'account')"),
      distributed('tokens', "create_reference_table('tokens')"),
    ],
  },
  {
    // Processes of version 1 go on to write "op" until they are replaced.
    tables: [
      'alter table plants alter column op drop not null',
      `create table if not exists batches (
  account text not null,
  begun_at_ms bigint not null,
  number bigint not null,
  done bigint[],
  primary key (account, begun_at_ms, number)
)`,
    ],
    distribution: [
      distributed(
        'batches',
        "create_distributed_table('batches', 'account', colocate_with => 'plants')",
      ),
    ],
  },
  {
    tables: ['alter table batches add column if not exists accounts text[]'],
    distribution: [
      // The rows are in the text of the statement, quoted (%L). Citus collects the rows of "unnest"
      // before it sends them on, and for each element that a statement takes from an array it writes
      // out the whole array. Both are several times slower.
      batchFunction(
        'plants_create_batch (of_account text, begun_at_ms bigint, number bigint, ids bigint[], names text[], tags text[], idempotency_keys text[])',
        `for done_id in execute 'insert into plants (account, id, name, tag, idempotency_key) values '
    || (
      select string_agg(format('(%L, %s, %L, %L, %L)', of_account, id, name, tag, idempotency_key), ', ')
      from unnest(ids, names, tags, idempotency_keys) as given (id, name, tag, idempotency_key)
    )
    || ' on conflict (account, id) do nothing returning id'
  loop
    done_ids := done_ids || done_id;
  end loop;`,
      ),
      distributedFunction(createFunction),
      batchFunction(
        'plants_delete_batch (of_account text, begun_at_ms bigint, number bigint, ids bigint[])',
        `for done_id in
    delete from plants where account = of_account and id = any(ids) returning id
  loop
    done_ids := done_ids || done_id;
  end loop;`,
      ),
      distributedFunction(deleteFunction),
    ],
  },
]

const schemaVersion = steps.length

function distributed(table: string, call: string): string {
  return `select ${call}\nwhere not exists (select 1 from pg_dist_partition where logicalrelid = '${table}'::regclass)`
}

/**
 * A function that does the writes of a batch, and keeps the row that says for which ids they were
 * done. Citus sends the call to the node of the account, so that both are done there.
 */
function batchFunction(signature: string, writes: string): string {
  return `create or replace function ${signature}
returns bigint[] language plpgsql as $function$
declare
  done_id bigint;
  done_ids bigint[];
begin
  ${writes}
  insert into batches (account, begun_at_ms, number, done)
  values (of_account, begun_at_ms, number, done_ids);
  return done_ids;
end
$function$`
}

function distributedFunction(signature: string): string {
  return `select create_distributed_function('${signature}', 'of_account', colocate_with => 'plants')`
}

/** What a process has to know of the engine. */
export interface Engine {
  /** A node sends statements on to the nodes that hold the rows. */
  readonly relaysStatements: boolean
  /** The functions for batches are there, as on Citus. */
  readonly hasBatchFunctions: boolean
}

/** Rejects with Unusable if the schema is not of this version. */
export async function requireSchema(nodes: Nodes): Promise<Engine> {
  const found = await versionOf(nodes)
  if (found === 0)
    throw new Unusable('it has no tables yet; run "plants migrate --store URL" first')
  if (found < schemaVersion)
    throw new Unusable(
      `its schema is version ${found} and this version of plants needs ${schemaVersion}; run "plants migrate --store URL" first`,
    )
  await requireColumns(nodes)
  const [row] = await nodes.send(
    {
      name: '',
      text: `select version() as version, to_regprocedure('${createFunction}') is not null as functions`,
    },
    [],
    false,
  )
  const hasBatchFunctions = row?.['functions'] === true
  // Such as "CockroachDB CCL v26.1" and "PostgreSQL 15.12-YB-2025.1".
  const isPlain = /^PostgreSQL (?!.*-YB-)/.test(String(row?.['version']))
  return { relaysStatements: hasBatchFunctions || !isPlain, hasBatchFunctions }
}

/**
 * What is left to do to bring a database to this version, in order. Rejects with Unusable if it is
 * not ours to change.
 */
export async function pendingStatements(nodes: Nodes): Promise<readonly string[]> {
  // One statement, so that it sees the tables of one moment while another may be making them; and
  // of the catalogue itself, which shows those of others too.
  const tables = await nodes.send(
    {
      name: '',
      text: `select relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
  where nspname = current_schema() and relname = any($1)`,
    },
    [['plants_schema', 'plants', 'tokens', 'batches']],
    false,
  )
  const names = tables.map(({ relname }) => String(relname))
  const [foreign] = names.includes('plants_schema') ? [] : names
  if (foreign !== undefined)
    throw new Unusable(
      `it holds a table "${foreign}" of another program; give plants a database of its own`,
    )
  const found = await versionOf(nodes)
  const citusText = `select 1 from pg_extension where extname = 'citus'`
  const isCitus = (await nodes.send({ name: '', text: citusText }, [], false)).length > 0
  return steps
    .slice(found)
    .flatMap(({ tables: own, distribution }, index) => [
      ...own,
      ...(isCitus ? distribution : []),
      `insert into plants_schema (version) values (${found + index + 1}) on conflict do nothing`,
    ])
}

/** Carries out what is left to do. Two at once are as good as one. */
export async function migrate(
  nodes: Nodes,
  pending: readonly string[],
  clock: Clock,
): Promise<void> {
  // What a statement fails with when another does the same at that moment: unique_violation in the
  // catalogue, duplicate_table, duplicate_object, invalid_table_definition (distributed already),
  // internal_error ("tuple concurrently updated"), serialization_failure, deadlock_detected.
  const racing = ['23505', '42P07', '42710', '42P16', 'XX000', '40001', '40P01']
  for (const text of pending) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await nodes.send({ name: '', text }, [], true)
        break
      } catch (error) {
        // undefined_column
        if (sqlStateOf(error) === '42703') throw foreignTables(error)
        if (!racing.includes(sqlStateOf(error)) || attempt === 20) throw error
        await clock.sleep(50)
      }
    }
  }
  await requireColumns(nodes)
}

/** Rejects with Unusable if a table is not ours to use, or has not our columns. */
async function requireColumns(nodes: Nodes): Promise<void> {
  try {
    for (const text of [
      'select account, id, name, tag, idempotency_key from plants limit 0',
      `select hash, ${tokenColumns}, is_first from tokens limit 0`,
      'select account, begun_at_ms, number, accounts, done from batches limit 0',
    ])
      await nodes.send({ name: '', text }, [], false)
  } catch (error) {
    // undefined_table, undefined_column, insufficient_privilege, wrong_object_type
    if (!['42P01', '42703', '42501', '42809'].includes(sqlStateOf(error))) throw error
    throw foreignTables(error)
  }
}

function foreignTables(error: unknown): Unusable {
  return new Unusable(
    `its tables "plants", "tokens" and "batches" are not those of plants, or this user may not use them (${(error as Error).message})`,
    { cause: error },
  )
}

/** 0 if there are no tables yet. Rejects with Unusable if the version is newer than this one. */
async function versionOf(nodes: Nodes): Promise<number> {
  let found: number
  try {
    const [row] = await nodes.send(statements.schemaVersion, [], false)
    found = Number(row?.['version'])
  } catch (error) {
    // undefined_table
    if (sqlStateOf(error) === '42P01') return 0
    throw error
  }
  if (found > schemaVersion)
    throw new Unusable(
      `it was migrated by a newer version of plants (schema ${found}, this version knows ${schemaVersion}); run that version`,
    )
  return found
}

function sqlStateOf(error: unknown): string {
  return error instanceof DatabaseError ? (error.code ?? '') : ''
}
