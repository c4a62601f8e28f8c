// Every statement that a service sends, in the one dialect that PostgreSQL, Citus, CockroachDB and
// YugabyteDB share. Each is one atomic step; test/stores/postgres/statements.test.ts holds the
// subset.
import { tokenColumns } from '../tokens.ts'

/** A statement that each connection prepares once, under its name. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/**
 * The writes of a batch, and the row that says for which plants they were done. If a batch of this
 * number was done before, that row is there, and all of this fails with unique_violation.
 */
function onceOnly(writes: string): string {
  return `
    with done as (${writes})
    insert into batches (account, begun_at_ms, number, accounts, done)
    select $1::text, $2::bigint, $3::bigint, array_agg(account), array_agg(id) from done
    returning accounts, done`
}

const textBytes = 'octet_length(name) + coalesce(octet_length(tag), 0)'

/** A range of plants that ends early if their text exceeds a bound. */
const boundedRange = (columns: string): string => `
  select ${columns}, more
  from (
    select ${columns},
      lead(id) over plants_in_order is not null as more,
      sum(${textBytes}) over plants_before as text_before
    from (
      select ${columns} from plants
      where account = $1 and id >= $2 and id <= $3
      order by id limit $4
    ) as candidates
    window
      plants_in_order as (order by id),
      plants_before as (order by id rows between unbounded preceding and 1 preceding)
  ) as measured
  where coalesce(text_before, 0) <= $5
  order by id`

export const statements = {
  /**
   * What a connection must be before it is used: a node that takes writes, durably, in Unicode. It
   * also sets the server's deadline, and how the statements below are planned: once for each
   * connection, and by an index, however small or little known a table is at that moment. Citus
   * must see the values to plan. It has a name, so that it fails behind a pooler that hands on what
   * another connection has prepared.
   */
  greeting: {
    name: 'greeting',
    text: `select
      pg_is_in_recovery() as standby,
      current_setting('transaction_read_only', true) as read_only,
      current_setting('server_encoding', true) as encoding,
      current_setting('fsync', true) as fsync,
      current_setting('synchronous_commit', true) as synchronous_commit,
      set_config('statement_timeout', $1, false) as statement_timeout,
      (
        select count(set_config(wanted.name, wanted.setting, false))
        from (values
          ('plan_cache_mode', 'force_generic_plan'),
          ('enable_seqscan', 'off'),
          ('enable_hashjoin', 'off'),
          ('enable_mergejoin', 'off'),
          ('jit', 'off')
        ) as wanted (name, setting)
        join pg_settings on pg_settings.name = wanted.name
        where not exists (select 1 from pg_extension where extname = 'citus')
      ) as plan_settings`,
  },

  createPlants: {
    name: 'create_plants',
    text: onceOnly(`
      insert into plants (account, id, name, tag, idempotency_key)
      select account, id, name, tag, idempotency_key
      from unnest($4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[])
        as given (account, id, name, tag, idempotency_key)
      on conflict (account, id) do nothing
      returning account, id`),
  },

  /** As `createPlants`, on the node of the account $1; schema.ts has the function. */
  createPlantsOnNode: {
    name: 'create_plants_on_node',
    text: 'select plants_create_batch($1, $2, $3, $4, $5, $6, $7) as done',
  },

  findPlant: {
    name: 'find_plant',
    text: 'select id, name, tag, idempotency_key from plants where account = $1 and id = $2',
  },

  /**
   * With a plain "=" the server could walk the whole index instead, once for all that is given, if
   * it takes the table for nearly empty.
   */
  deletePlants: {
    name: 'delete_plants',
    text: onceOnly(`
      delete from plants using unnest($4::text[], $5::bigint[]) as given (account, id)
      where plants.account = any(array[given.account]) and plants.id = any(array[given.id])
      returning plants.account, plants.id`),
  },

  /** As `deletePlants`, on the node of the account $1; schema.ts has the function. */
  deletePlantsOnNode: {
    name: 'delete_plants_on_node',
    text: 'select plants_delete_batch($1, $2, $3, $4) as done',
  },

  /** Written again as it is, so that the answer waits for a commit (plants.ts). */
  findBatch: {
    name: 'find_batch',
    text: 'update batches set done = done where account = $1 and begun_at_ms = $2 and number = $3 returning accounts, done',
  },

  /** Deletes the first 100 batches from before a time, or none if there are fewer. */
  forgetBatches: {
    name: 'forget_batches',
    text: `
      delete from batches
      where account = $1 and begun_at_ms <= (
        select begun_at_ms from batches where account = $1 and begun_at_ms < $2
        order by begun_at_ms limit 1 offset 99
      )`,
  },

  /** A plant with more text than $5 comes without a name. */
  listPlants: {
    name: 'list_plants',
    text: `
      select id,
        case when ${textBytes} <= $5 then name end as name,
        case when ${textBytes} <= $5 then tag end as tag
      from plants
      where account = $1 and id >= $2 and id <= $3
      order by id limit $4`,
  },

  /** As `listPlants`, at half its speed, with $5 as the bound of all their text together. */
  listLongPlants: { name: 'list_long_plants', text: boundedRange('id, name, tag') },

  nthPlantId: {
    name: 'nth_plant_id',
    text: 'select id from plants where account = $1 and id >= $2 order by id limit 1 offset $3',
  },

  keptPlants: { name: 'kept_plants', text: boundedRange('id, name, tag, idempotency_key') },
  databaseBytes: {
    name: 'database_bytes',
    text: 'select pg_database_size(current_database()) as bytes',
  },
  countPlants: { name: 'count_plants', text: 'select count(*) as plants from plants' },
  countPlantsOf: {
    name: 'count_plants_of',
    text: 'select count(*) as plants from plants where account = $1',
  },

  /** A token that is there under this hash is our own: its hash is as random as the token. */
  issueToken: {
    name: 'issue_token',
    text: `
      insert into tokens (hash, ${tokenColumns}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
      on conflict (hash) do update set label = tokens.label`,
  },

  /** Of several first tokens at once the unique column lets one in. */
  issueFirstToken: {
    name: 'issue_first_token',
    text: `
      insert into tokens (hash, ${tokenColumns}, is_first)
      select $1::bytea, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint, $8::bigint, $9::bigint, true
      where not exists (select 1 from tokens)
      on conflict do nothing
      returning id`,
  },

  findToken: { name: 'find_token', text: `select ${tokenColumns} from tokens where hash = $1` },
  listTokens: {
    name: 'list_tokens',
    text: `select ${tokenColumns} from tokens where account = coalesce($1, account)`,
  },
  anyToken: { name: 'any_token', text: 'select 1 from tokens limit 1' },

  revokeToken: {
    name: 'revoke_token',
    text: `update tokens set revoked_at_ms = coalesce(revoked_at_ms, $2) where id = $1 returning ${tokenColumns}`,
  },

  noteTokenUse: {
    name: 'note_token_use',
    text: 'update tokens set last_used_at_ms = $2 where id = $1 and (last_used_at_ms is null or last_used_at_ms < $2)',
  },

  keptTokens: {
    name: 'kept_tokens',
    text: `select hash, ${tokenColumns} from tokens where hash > $1 and hash <= $2 order by hash limit $3`,
  },

  /**
   * Writes the one row of no account, so that its commit waits for the standbys as every other.
   * While one commit waits, its row is locked: all later probes, of all processes, fail by the
   * server's deadline and leave nothing behind that waits.
   */
  probe: {
    name: 'probe',
    text: `
      insert into batches (account, begun_at_ms, number) values ($1, 0, 0)
      on conflict (account, begun_at_ms, number) do update set done = excluded.done`,
  },

  schemaVersion: {
    name: 'schema_version',
    text: 'select coalesce(max(version), 0) as version from plants_schema',
  },
} as const satisfies Record<string, Statement>
