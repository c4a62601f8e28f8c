// The tables, as numbered steps forward. A step that has been released is never changed.
import type { DatabaseSync } from 'node:sqlite'
import { Unusable } from '../failures.ts'

/** Marks a file as ours in its header ("plan" in ASCII), so that no other database is touched. */
export const applicationId = 0x706c616e

/**
 * Name and tag together above this are kept apart from their plant. SQLite keeps up to 1,002 bytes
 * of a record on an index page of 4,096; the rest is for an account and an idempotency key of 255
 * bytes each.
 */
export const shortTextBytesMax = 450

/**
 * Step n takes a database from version n to n + 1; the version is in the file's header
 * (user_version).
 */
const steps: readonly string[] = [
  `create table plants (
     account text not null,
     id integer not null,
     name text not null,
     tag text,
     idempotency_key text,
     primary key (account, id)
   ) strict, without rowid;

   create table tokens (
     hash blob not null primary key,
     id text not null unique,
     account text not null,
     label text not null,
     scopes text not null,
     created_at_ms integer not null,
     expires_at_ms integer,
     revoked_at_ms integer,
     last_used_at_ms integer
   ) strict, without rowid;`,

  // Long texts leave the tree that every account searches: there a record that overflows its page
  // is read whole each time a search compares with it. The columns have new names so that a process
  // of an earlier version, which knows nothing of the other table, fails rather than gives out
  // empty names.
  `create table long_texts (
     number integer not null primary key,
     name text not null,
     tag text
   ) strict;

   alter table plants rename column name to short_name;
   alter table plants rename column tag to short_tag;
   alter table plants add column long_text integer;

   insert into long_texts
     select row_number() over (order by account, id), short_name, short_tag from plants
     where octet_length(short_name) + ifnull(octet_length(short_tag), 0) > 450;
   update plants set short_name = '', short_tag = null, long_text = number
     from (
       select account as long_account, id as long_id, row_number() over (order by account, id) as number from plants
       where octet_length(short_name) + ifnull(octet_length(short_tag), 0) > 450
     )
     where account = long_account and id = long_id;

   create trigger long_text_goes_with_its_plant after delete on plants when old.long_text is not null begin
     delete from long_texts where number = old.long_text;
   end;`,
]

const schemaVersion = steps.length

/**
 * What makes a database of version n look like one of the current version to a connection that may
 * not change it.
 */
const views: Readonly<Record<number, string>> = {
  1: `create temp view plants as
        select account, id, name as short_name, tag as short_tag, idempotency_key, null as long_text
        from main.plants;
      create temp table long_texts (number integer primary key, name text, tag text)`,
}

/**
 * Throws if a database is another program's or a later version's, before anything in it is touched.
 */
export function refuseForeign(database: DatabaseSync): void {
  // One snapshot: another process may be making the tables of a new file at this moment.
  database.exec('begin')
  const { tables } = database.prepare('select count(*) as tables from sqlite_schema').get() as {
    tables: number
  }
  const owner = pragma(database, 'application_id')
  const found = pragma(database, 'user_version')
  database.exec('commit')
  if (owner !== applicationId && (owner !== 0 || tables > 0)) {
    throw new Unusable('it is a database of another program; name another file')
  }
  if (found > schemaVersion) {
    throw new Unusable(
      `it was written by a newer version of plants (schema ${found}, this version knows ${schemaVersion}); run that version`,
    )
  }
}

/**
 * Lets a connection that may not change its database read it as one of the current version. Throws
 * if it is no store.
 */
export function readAsCurrent(database: DatabaseSync): void {
  refuseForeign(database)
  const found = pragma(database, 'user_version')
  if (found === 0) throw new Unusable('it is empty, no store was made in it yet')
  database.exec(views[found] ?? '')
}

/** Brings a database to the current version, or does nothing at all. */
export function migrate(database: DatabaseSync): void {
  database.exec('begin immediate')
  try {
    const found = pragma(database, 'user_version')
    for (const step of steps.slice(found)) database.exec(step)
    if (found < schemaVersion)
      database.exec(
        `pragma application_id = ${applicationId}; pragma user_version = ${schemaVersion}`,
      )
    database.exec('commit')
  } catch (error) {
    if (database.isTransaction) database.exec('rollback')
    throw error
  }
}

function pragma(database: DatabaseSync, name: string): number {
  return (database.prepare(`pragma ${name}`).get() as Record<string, number>)[name] ?? 0
}
