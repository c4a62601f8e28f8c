// Several service processes on one database: they agree, and they follow a failover without a
// restart and without the loss of an acknowledged write.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { until } from '../support/clock.ts'
import { Load, nothingWrong } from '../support/load.ts'
import {
  type PostgresServer,
  type Standby,
  startPostgres,
  startStandby,
} from '../support/postgres.ts'
import { type Running, run, start } from '../support/process.ts'
import { call, folderMaker } from '../support/service.ts'
import { prepare } from '../support/stores.ts'

const folder = folderMaker()

let primary: PostgresServer
let standby: Standby
let store: string
let processes: readonly Running[]
let urls: readonly string[]
beforeAll(async () => {
  primary = await startPostgres()
  await prepare(primary.url())
  standby = await startStandby(primary)
  await standby.makeSynchronous()
  // The standby comes first, because the order of the hosts must not matter.
  store = `postgres://plants:secret@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/plants`
  processes = [0, 1].map(() => start(['serve', '--port', '0'], folder(), { PLANTS_STORE: store }))
  urls = await Promise.all(processes.map(({ url }) => url))
}, 30_000)
afterAll(async () => {
  for (const { process } of processes) process.kill('SIGTERM')
  const ended = await Promise.all(processes.map(({ finished }) => finished))
  await standby.dispose()
  await primary.dispose()
  expect(ended.map(({ code }) => code)).toEqual([0, 0])
}, 30_000)

async function newToken(account: string): Promise<string> {
  return (
    await run(['token', 'issue', '--account', account], folder(), { PLANTS_STORE: store })
  ).out.trim()
}

const on = (n: number): string => urls[n % urls.length] ?? ''

describe('two service processes on one database', () => {
  test('give an id to one of sixteen creators who race through both', async () => {
    const token = await newToken('racers')
    for (let id = 0; id < 20; id += 1) {
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          call(on(n), 'POST', '/plants', { token, body: `{"id":${id},"name":"${n}"}` }),
        ),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(15).fill(409)])
    }
  })

  test('see at once what the other acknowledged', async () => {
    const token = await newToken('readers')
    for (let id = 0; id < 40; id += 1) {
      expect(
        (await call(on(id), 'POST', '/plants', { token, body: `{"id":${id},"name":"${id}"}` }))
          .status,
      ).toBe(200)
      expect((await call(on(id + 1), 'GET', '/plants', { token })).text).toBe(`[{"name":"${id}"}]`)
      expect((await call(on(id + 1), 'DELETE', `/plants/${id}`, { token })).status).toBe(204)
    }
  })

  test('refuse a revoked token in both within the stated three seconds', async () => {
    const token = await newToken('revoked')
    for (const url of urls) expect((await call(url, 'GET', '/plants', { token })).status).toBe(200)
    const [{ id }] = JSON.parse(
      (await run(['token', 'list', '--account', 'revoked', '--json', '--store', store], folder()))
        .out,
    )
    expect((await run(['token', 'revoke', id], folder(), { PLANTS_STORE: store })).code).toBe(0)
    const revokedMs = performance.now()
    for (const url of urls)
      await until(
        'the token is refused',
        async () => (await call(url, 'GET', '/plants', { token })).status === 401,
      )
    // The last request of each may be sent in time and answered after it.
    expect(performance.now() - revokedMs).toBeLessThan(3500)
  })

  test('note when a token was last used', async () => {
    const token = await newToken('noted')
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => call(on(n), 'GET', '/plants', { token })),
    )
    const noted = "select 1 from tokens where account = 'noted' and last_used_at_ms is not null"
    await until('the use is noted', async () => (await primary.sql(noted)).length > 0)
    const [record] = JSON.parse(
      (await run(['token', 'list', '--account', 'noted', '--json', '--store', store], folder()))
        .out,
    )
    expect(Date.now() - Date.parse(record.lastUsedAt)).toBeLessThan(3_600_000 + 60_000)
  })
})

describe('a commit that did not reach the standby', () => {
  test('is acknowledged only when it has reached it, though its wait was cancelled', async () => {
    const token = await newToken('cautious')
    expect((await call(on(0), 'GET', '/plants', { token })).text).toBe('[]')
    standby.pause()
    let answered = 0
    const headers = { 'Idempotency-Key': 'k' }
    const create = async (n: number): Promise<number> => {
      const { status } = await call(on(n), 'POST', '/plants', {
        token,
        headers,
        body: '{"id":1,"name":"x"}',
      })
      answered += 1
      return status
    }
    const first = create(0)
    const waiting =
      "select pid from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'plants'"
    await until('the commit waits', async () => (await primary.sql(waiting)).length > 0)
    // An operator who cancels the wait: the row is there now, on the primary alone.
    await primary.sql(`select pg_cancel_backend(pid) from (${waiting}) as waiting`)
    const row = "select 1 from plants where account = 'cautious'"
    await until('the row is there', async () => (await primary.sql(row)).length > 0)
    // Nor is a repeat with its key, which finds that row.
    const repeated = create(1)
    await until('both wait', async () => (await primary.sql(waiting)).length === 2)
    expect(answered).toBe(0)
    standby.resume()
    expect(await Promise.all([first, repeated])).toEqual([200, 200])
    expect(await standby.sql("select name from plants where account = 'cautious'")).toEqual([
      { name: 'x' },
    ])
  }, 30_000)
})

describe('readiness', () => {
  test('ends while the only synchronous standby is away, and one commit waits, not ever more', async () => {
    const token = await newToken('ready')
    const answersOf = (path: string) =>
      Promise.all(urls.map((url) => call(url, 'GET', path, { token })))
    const statusesOf = async (path: string) => (await answersOf(path)).map(({ status }) => status)
    await until('both are ready', async () => !(await statusesOf('/readyz')).includes(503))
    standby.pause()
    await until('neither is ready', async () => !(await statusesOf('/readyz')).includes(200))
    for (let round = 0; round < 2; round += 1) {
      await Bun.sleep(1000)
      for (const { status, json } of await answersOf('/readyz'))
        expect({ status, json }).toEqual({
          status: 503,
          json: {
            error: 503,
            message:
              'The store did not confirm a write in time; a synchronous standby of the database may be missing.',
          },
        })
      expect(await statusesOf('/plants')).toEqual([200, 200])
    }
    const waiting =
      "select 1 from pg_stat_activity where wait_event in ('SyncRep', 'transactionid') and query like '%values ($1, 0, 0)%'"
    expect(await primary.sql(`${waiting} and pid <> pg_backend_pid()`)).toHaveLength(1)
    standby.resume()
    await until('both are ready again', async () => !(await statusesOf('/readyz')).includes(503))
    expect(await primary.sql("select 1 from batches where account = ''")).toHaveLength(1)
  }, 60_000)

  test('costs one write a second, however many ask', async () => {
    const written = "select xmin from batches where account = ''"
    const before = await primary.sql(written)
    const startedMs = performance.now()
    for (let n = 0; n < 200; n += 1) await call(on(0), 'GET', '/readyz')
    const seconds = (performance.now() - startedMs) / 1000
    const [{ versions } = {}] = await primary.sql(
      `select max(xmin::text::bigint) - ${before[0]?.['xmin']} as versions from batches where account = ''`,
    )
    expect(Number(versions)).toBeLessThanOrEqual(Math.ceil(seconds) + 1)
  })
})

describe('the death of the primary', () => {
  test('under load from both processes loses nothing that was acknowledged, and writes resume without a restart', async () => {
    const load = new Load(urls, await newToken('load'))
    load.start(16)
    await load.further(500)
    await primary.kill()
    await standby.promote()
    const promotedMs = performance.now()
    await load.further(1)
    const resumedMs = performance.now() - promotedMs
    await load.further(500)
    await load.stop()
    expect(await load.findings()).toEqual(nothingWrong)
    expect(resumedMs).toBeLessThan(5000)
    expect(processes.map(({ process }) => process.exitCode)).toEqual([null, null])
    for (const { err } of processes)
      expect(err()).toContain(`connected to the database at 127.0.0.1:${standby.port}`)
    console.log(
      `no write for ${load.gap.lengthMs.toFixed(0)} ms, ${resumedMs.toFixed(0)} ms after the promotion; ${JSON.stringify(load.statuses)}`,
    )
  }, 60_000)
})
