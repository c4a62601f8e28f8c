// `plants migrate` on empty, prepared and foreign databases.
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sharedPostgres } from '../support/postgres.ts'
import { run } from '../support/process.ts'
import { folderMaker } from '../support/service.ts'

const folder = folderMaker()

let databases = 0
async function newDatabase(): Promise<string> {
  databases += 1
  return (await sharedPostgres()).createDatabase(`migrate_${process.pid}_${databases}`)
}

const nameOf = (url: string): string => url.slice(url.lastIndexOf('/') + 1)

describe('plants migrate', () => {
  test('prepares a database, and does nothing the second time', async () => {
    const url = await newDatabase()
    const refused = await run(['token', 'list', '--store', url], folder())
    expect([refused.code, refused.out]).toEqual([1, ''])
    expect(refused.err).toContain('it has no tables yet; run "plants migrate --store URL" first')
    const first = await run(['migrate', '--store', url], folder())
    expect([first.code, first.out]).toEqual([0, ''])
    expect(first.err).toMatch(/is ready: 9 statements were run\.\n$/)
    const second = await run(['migrate', '--store', url], folder())
    expect([second.code, second.out]).toEqual([0, ''])
    expect(second.err).toMatch(/is up to date\.\n$/)
    expect(first.err + second.err + refused.err).not.toContain('secret')
    expect((await run(['token', 'list', '--store', url], folder())).code).toBe(0)
  })

  test('prints what it would do, and does none of it', async () => {
    const url = await newDatabase()
    const { code, out, err } = await run(['migrate', '--print', '--store', url], folder())
    expect(code).toBe(0)
    expect(out).toStartWith('create table if not exists plants_schema (\n')
    expect(out).toContain(
      'create table if not exists plants (\n  account text not null,\n  id bigint not null,',
    )
    expect(err).toContain('nothing was changed')
    const server = await sharedPostgres()
    expect(
      await server.sql(
        "select * from information_schema.tables where table_name like 'plants%'",
        nameOf(url),
      ),
    ).toEqual([])
    // The printed SQL is complete: after it is run by hand, nothing is left to do.
    await server.sql(`set role plants; ${out}`, nameOf(url))
    const again = await run(['migrate', '--print', '--store', url], folder())
    expect([again.code, again.out]).toEqual([0, ''])
    expect(again.err).toContain('is up to date')
  })

  test('works when eight run at once', async () => {
    const url = await newDatabase()
    const results = await Promise.all(
      Array.from({ length: 8 }, () => run(['migrate', '--store', url], folder())),
    )
    expect(results.map(({ code, err }) => (code === 0 ? 0 : err))).toEqual(Array(8).fill(0))
    const token = await run(['token', 'issue', '--account', 'a', '--store', url], folder())
    expect(token.out).toMatch(/^plants_\w{49}\n$/)
  })

  test('goes on where an earlier run was cut off', async () => {
    const url = await newDatabase()
    await (await sharedPostgres()).sql(
      'set role plants; create table plants_schema (version bigint not null primary key); create table tokens ()',
      nameOf(url),
    )
    await (await sharedPostgres()).sql('drop table tokens', nameOf(url))
    expect((await run(['migrate', '--store', url], folder())).code).toBe(0)
  })

  test.each([
    ['a table of its own', 'set role plants; create table plants (name text)'],
    ['a table of another user', 'create table plants (name text)'],
    ['a view', 'set role plants; create view tokens as select 1 as hash'],
  ])("leaves another program's tables alone: %s", async (_what, preparation) => {
    const url = await newDatabase()
    const server = await sharedPostgres()
    await server.sql(preparation, nameOf(url))
    const { code, err } = await run(['migrate', '--store', url], folder())
    expect(code).toBe(1)
    expect(err).toMatch(
      /it holds a table "(?:plants|tokens)" of another program; give plants a database of its own\.\n$/,
    )
    expect(
      await server.sql("select 1 from pg_tables where tablename = 'plants_schema'", nameOf(url)),
    ).toEqual([])
  })

  test('brings a database of version 1 to this version, with its plants', async () => {
    const url = await newDatabase()
    const server = await sharedPostgres()
    await run(['migrate', '--store', url], folder())
    await server.sql(
      `drop table batches; alter table plants alter column op set not null;
       delete from plants_schema where version > 1; insert into plants values ('a', 1, 'x', null, null, 5)`,
      nameOf(url),
    )
    const refused = await run(['serve', '--port', '0', '--store', url], folder())
    expect(refused.err).toContain('its schema is version 1 and this version of plants needs 3')
    const { code, err } = await run(['migrate', '--store', url], folder())
    expect(code).toBe(0)
    expect(err).toMatch(/is ready: 5 statements were run\.\n$/)
    expect((await run(['token', 'issue', '--account', 'a', '--store', url], folder())).code).toBe(0)
    expect(await server.sql('select name, op::int from plants', nameOf(url))).toEqual([
      { name: 'x', op: 5 },
    ])
  })

  test.each([
    ['so that a step fails', 'create table plants (x int)'],
    ['although each step succeeds', 'create table plants (x int, op bigint)'],
  ])('says so if a table has not our columns, %s', async (_when, table) => {
    const url = await newDatabase()
    await (await sharedPostgres()).sql(
      `set role plants; create table plants_schema (version bigint not null primary key); ${table}`,
      nameOf(url),
    )
    const { code, out, err } = await run(['migrate', '--store', url], folder())
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('its tables "plants", "tokens" and "batches" are not those of plants')
  })

  test('lets serve say so too', async () => {
    const url = await newDatabase()
    await run(['migrate', '--store', url], folder())
    await (await sharedPostgres()).sql('alter table plants rename tag to x', nameOf(url))
    const { code, out, err } = await run(['serve', '--port', '0', '--store', url], folder())
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('its tables "plants", "tokens" and "batches" are not those of plants')
  })

  test('refuses a schema of a newer version, as serve does', async () => {
    const url = await newDatabase()
    await run(['migrate', '--store', url], folder())
    await (await sharedPostgres()).sql(
      'insert into plants_schema (version) values (9)',
      nameOf(url),
    )
    for (const command of [['migrate'], ['serve', '--port', '0']]) {
      const { code, out, err } = await run([...command, '--store', url], folder())
      expect([code, out]).toEqual([1, ''])
      expect(err).toContain(
        'it was migrated by a newer version of plants (schema 9, this version knows 3); run that version.\n',
      )
    }
  })

  test('says that an embedded store needs no migration, and makes no store', async () => {
    const home = folder()
    const { code, out, err } = await run(['migrate'], home)
    expect([code, out]).toEqual([0, ''])
    expect(err).toBe(
      `sqlite:${home}/plants.db needs no migration: an embedded store is brought up to date whenever it is opened.\n`,
    )
    expect(existsSync(join(home, 'plants.db'))).toBe(false)
  })
})
