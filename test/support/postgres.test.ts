// What the tests expect of their PostgreSQL servers: both orders of text, and a standby that loses
// nothing.
import { afterAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { Client } from 'pg'
import { until } from './clock.ts'
import { type PostgresServer, sharedPostgres, startPostgres, startStandby } from './postgres.ts'
import { startTcpProxy } from './tcpProxy.ts'

const servers: PostgresServer[] = []
afterAll(async () => {
  for (const server of servers) await server.dispose()
})

function disposedLater<S extends PostgresServer>(server: S): S {
  servers.push(server)
  return server
}

/** Asks as the role "plants", which is no superuser. */
async function ask(url: string, text: string): Promise<unknown> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows[0]
  } finally {
    await client.end()
  }
}

const order = `select datlocprovider, datcollate, datlocale, pg_encoding_to_char(encoding) as encoding, 'a' < 'B' as folded
  from pg_database where datname = current_database()`

test('a server orders text by bytes', async () => {
  const server = await sharedPostgres()
  expect(await sharedPostgres()).toBe(server)
  const url = await server.createDatabase('ordered_by_bytes')
  expect(await ask(url, order)).toEqual({
    datlocprovider: 'c',
    datcollate: 'C',
    datlocale: null,
    encoding: 'UTF8',
    folded: false,
  })
  expect(await ask(url, 'create table kept as select 1 as one')).toBeUndefined()
  expect(
    await ask(
      url,
      "select current_setting('is_superuser') as superuser, current_setting('fsync') as fsync",
    ),
  ).toEqual({
    superuser: 'off',
    fsync: 'on',
  })
  expect(await server.sql('select 1 as one; select 2 as two', 'ordered_by_bytes')).toEqual([
    { two: 2 },
  ])
})

test('a server orders text by ICU', async () => {
  const server = disposedLater(
    await startPostgres({ locale: 'icu', settings: { work_mem: '8MB' } }),
  )
  expect(await ask(server.url(), order)).toEqual({
    datlocprovider: 'i',
    datcollate: 'C',
    datlocale: 'en-US',
    encoding: 'UTF8',
    folded: true,
  })
  expect(await server.sql('show work_mem')).toEqual([{ work_mem: '8MB' }])
  await server.dispose()
  expect(existsSync(server.folder)).toBe(false)
})

test('a synchronous standby holds what was committed when the primary was killed', async () => {
  const primary = disposedLater(await startPostgres())
  await primary.sql('create table kept (id int8 primary key)')
  const standby = disposedLater(await startStandby(primary))
  await standby.makeSynchronous()
  await primary.sql('insert into kept values (7)')
  await primary.kill()
  await expect(primary.sql('select 1')).rejects.toThrow('ECONNREFUSED')
  await expect(standby.sql('insert into kept values (8)')).rejects.toThrow('read-only')
  await standby.promote()
  await standby.sql('insert into kept values (8)')
  expect(await standby.sql('select id from kept order by id')).toEqual([{ id: '7' }, { id: '8' }])
})

test('a killed server comes back with what was committed, a halted one with its connections', async () => {
  const server = disposedLater(await startPostgres())
  await server.sql('create table kept as select 7 as id')
  await server.kill()
  await server.start()
  expect(await server.sql('select id from kept')).toEqual([{ id: 7 }])
  server.pause()
  const answer = server.sql('select 1 as one')
  expect(await Promise.race([answer, Bun.sleep(200).then(() => 'nothing')])).toBe('nothing')
  server.resume()
  expect(await answer).toEqual([{ one: 1 }])
  await server.stop()
  await expect(server.sql('select 1')).rejects.toThrow('ECONNREFUSED')
})

test('a proxy falls silent both ways or in one, takes up again, breaks, and loses answers', async () => {
  const server = await sharedPostgres()
  await server.sql('create table proxied (id int8)')
  const proxy = await startTcpProxy(server.port)
  const url = server.url().replace(String(server.port), String(proxy.port))
  const client = new Client({ connectionString: url.replace('plants:', 'postgres:') })
  client.on('error', () => {})
  await client.connect()
  const count = async (): Promise<unknown> =>
    (await server.sql('select count(*)::int as kept from proxied'))[0]?.['kept']
  const silent = async (answer: Promise<unknown>): Promise<boolean> =>
    await Promise.race([answer.then(() => false), Bun.sleep(150).then(() => true)])

  proxy.freezeReplies()
  const first = client.query('insert into proxied values (1)')
  expect(await silent(first)).toBe(true)
  expect(await count()).toBe(1)
  proxy.freeze()
  const second = client.query('insert into proxied values (2)')
  const connecting = ask(url, 'select 1 as one')
  expect(await silent(Promise.race([second, connecting]))).toBe(true)
  expect(await count()).toBe(1)
  proxy.thaw()
  await Promise.all([first, second])
  expect(await connecting).toEqual({ one: 1 })
  expect(await count()).toBe(2)

  const lost = client.query('select pg_sleep(5)')
  proxy.cut()
  await expect(lost).rejects.toThrow()
  expect(await ask(url, 'select 1 as one')).toEqual({ one: 1 })

  const another = new Client({ connectionString: url.replace('plants:', 'postgres:') })
  another.on('error', () => {})
  await another.connect()
  proxy.loseReplies(1)
  await expect(another.query('insert into proxied values (3)')).rejects.toThrow()
  await until('it is done all the same', async () => (await count()) === 3)
  proxy.loseReplies(0)
  expect(await ask(url, 'select 1 as one')).toEqual({ one: 1 })
  await proxy.close()
  await expect(ask(url, 'select 1')).rejects.toThrow('ECONNREFUSED')
})
