// What tests expect of the databases that they are given.
import { expect, test } from 'bun:test'
import { sharedPostgres } from './postgres.ts'
import { emptied, prepare } from './stores.ts'

test('a database that is named with several hosts is prepared and emptied on the one that takes writes', async () => {
  const server = await sharedPostgres()
  const name = 'with_several_hosts'
  const url = (await server.createDatabase(name)).replace('@', '@127.0.0.1:1,')
  await prepare(url)
  await server.sql("insert into plants values ('a', 1, 'x', null, null, 1)", name)
  expect(await emptied(url)).toBe(url)
  expect(await server.sql('select 1 from plants', name)).toEqual([])
})
