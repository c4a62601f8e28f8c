// What the rows of batches are for: with them a write whose answer was lost takes effect once, and
// if they are forgotten, the judge of histories finds out that it took effect twice.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { openStore } from '../../../src/stores/open.ts'
import { until } from '../../support/clock.ts'
import { judge, type Operation, type Request } from '../../support/linearizability.ts'
import { type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { emptied, locationOf, prepare, storeOptions } from '../../support/stores.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts'

let server: PostgresServer
let proxy: TcpProxy
let store: Store
let other: Store
beforeAll(async () => {
  server = await startPostgres()
  await prepare(server.url())
  proxy = await startTcpProxy(server.port)
  const behindProxy = server.url().replace(`:${server.port}/`, `:${proxy.port}/`)
  store = await openStore(locationOf(behindProxy), storeOptions)
  other = await openStore(locationOf(server.url()), storeOptions)
}, 30_000)
afterAll(async () => {
  await store.close()
  await other.close()
  await proxy.close()
  await server.dispose()
}, 30_000)

const remove: Request = { kind: 'delete' }
const read: Request = { kind: 'read' }
const create = (plant: string): Request => ({ kind: 'create', plant, key: '' })

async function done({ plants }: Store, request: Request): Promise<Operation> {
  const calledMs = performance.now()
  const answer = await answerOf()
  return { request, answer, calledMs, answeredMs: performance.now() }

  async function answerOf(): Promise<string> {
    if (request.kind === 'read') return (await plants.list('a', { limit: 1 })).plants[0]?.name ?? ''
    if (request.kind === 'delete') return (await plants.delete('a', 7n)) ? 'deleted' : 'missing'
    const plant = { id: 7n, name: request.plant, tag: null, idempotencyKey: null }
    return (await plants.create('a', plant)) ? 'taken' : 'created'
  }
}

const row = 'select 1 from plants'
const noRow = `select 1 where not exists (${row})`

test.each([
  {
    what: 'a delete, while another client creates a plant under its id',
    before: [create('first')],
    lost: remove,
    isDone: noRow,
    meanwhile: create('second'),
  },
  {
    what: 'a create, while another client deletes its plant',
    before: [],
    lost: create('first'),
    isDone: row,
    meanwhile: remove,
  },
])('the answer is lost to $what', async ({ before, lost, isDone, meanwhile }) => {
  for (const [forgotten, verdict] of [
    [false, 'linearizable'],
    [true, 'not linearizable'],
  ] as const) {
    await emptied(server.url())
    const history = [await done(store, read)]
    for (const request of before) history.push(await done(other, request))
    proxy.freezeReplies()
    const answered = done(store, lost)
    await until('it is done', async () => (await server.sql(isDone)).length === 1)
    if (forgotten) await server.sql('delete from batches')
    history.push(await done(other, meanwhile))
    proxy.cut()
    proxy.thaw()
    history.push(await answered, await done(other, read))
    expect(judge(history).kind).toBe(verdict)
  }
})
