// What clients see while the database fails in each of the ways that it can: no acknowledged write
// is lost, no answer is false, and none is waited for without end.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Failure } from '../../../src/domain/failure.ts'
import { readStoreLocation, type StoreLocation } from '../../../src/stores/location.ts'
import { openStore } from '../../../src/stores/open.ts'
import { until } from '../../support/clock.ts'
import { Load, nothingWrong } from '../../support/load.ts'
import {
  type PostgresServer,
  type Standby,
  startPostgres,
  startStandby,
} from '../../support/postgres.ts'
import {
  type Answer,
  folderMaker,
  startTestService,
  type TestService,
} from '../../support/service.ts'
import { emptied, locationOf, prepare, storeOptions } from '../../support/stores.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts'

const folder = folderMaker()

let server: PostgresServer
let standby: Standby
beforeAll(async () => {
  server = await startPostgres()
  await prepare(server.url())
  standby = await startStandby(server)
}, 30_000)
afterAll(async () => {
  await standby.dispose()
  await server.dispose()
}, 30_000)

/** A service on the database, by the hosts and parameters given, and a token for it. */
async function withServiceOn(
  { hosts, parameters = '' }: { hosts?: string; parameters?: string },
  use: (service: TestService, token: string) => Promise<void>,
): Promise<void> {
  const service = await startTestService(at(hosts ?? `127.0.0.1:${server.port}`, parameters))
  try {
    await use(service, await service.tokenFor('a'))
  } finally {
    await service.stop()
    await emptied(server.url())
  }
}

function at(hosts: string, parameters = ''): StoreLocation {
  return locationOf(`postgres://plants:secret@${hosts}/plants?${parameters}`)
}

const create = (
  service: TestService,
  token: string,
  id: number,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  service.call('POST', '/plants', { token, headers, body: `{"id":${id},"name":"${id}"}` })
const remove = (service: TestService, token: string, id: number): Promise<Answer> =>
  service.call('DELETE', `/plants/${id}`, { token })
const list = (service: TestService, token: string): Promise<Answer> =>
  service.call('GET', '/plants', { token })

async function timed<Value>(work: Promise<Value>): Promise<[value: Value, elapsedMs: number]> {
  const startedMs = performance.now()
  return [await work, performance.now() - startedMs]
}

/** Locks a table against everybody until the returned function is called. */
async function lockPlants(): Promise<() => Promise<void>> {
  const locked = server
    .sql('begin; lock table plants in access exclusive mode; select pg_sleep(60)')
    .catch(() => {})
  for (let held = false; !held; await Bun.sleep(10)) {
    const locks = await server.sql(
      "select 1 from pg_locks where mode = 'AccessExclusiveLock' and relation = 'plants'::regclass",
    )
    held = locks.length > 0
  }
  return async () => {
    await server.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()",
    )
    await locked
  }
}

describe('under load', () => {
  test(
    'backends that are terminated during queries cost no acknowledged write, and are no lost database',
    () =>
      withServiceOn({}, async (service, token) => {
        const load = new Load([service.url], token)
        load.start(12)
        for (let round = 0; round < 40; round += 1) {
          await Bun.sleep(50)
          await server.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'plants'",
          )
        }
        await load.further(100)
        await load.stop()
        expect(await load.findings()).toEqual(nothingWrong)
        expect(load.acknowledged).toBeGreaterThan(200)
        expect(service.logged.filter((line) => line.includes('lost the database'))).toEqual([])
      }),
    60_000,
  )

  test.each(['fast', 'immediate'] as const)(
    'a restart of the database (%s) is waited out',
    (mode) =>
      withServiceOn({}, async (service, token) => {
        const load = new Load([service.url], token)
        load.start(12)
        await load.further(200)
        await server.stop(mode)
        await Bun.sleep(300)
        await server.start()
        await load.further(200)
        await load.stop()
        expect(await load.findings()).toEqual(nothingWrong)
      }),
    60_000,
  )

  test('connections that break cost no acknowledged write', async () => {
    const proxy = await startTcpProxy(server.port)
    await withServiceOn({ hosts: `127.0.0.1:${proxy.port}` }, async (service, token) => {
      const load = new Load([service.url], token)
      load.start(12)
      for (let round = 0; round < 20; round += 1) {
        await Bun.sleep(80)
        proxy.cut()
      }
      await load.further(100)
      await load.stop()
      expect(await load.findings()).toEqual(nothingWrong)
    })
    await proxy.close()
  }, 60_000)
})

describe('a write that comes with a warning', () => {
  /** Lets each write raise a warning, at once or at its commit. */
  async function whileInsertsWarn(trigger: string, work: () => Promise<void>): Promise<void> {
    await server.sql(
      `create function warn() returns trigger language plpgsql as $$
         begin raise warning 'database must be vacuumed'; return new; end $$;
       create ${trigger} for each row execute function warn()`,
    )
    await work().finally(() => server.sql('drop function warn cascade'))
  }

  test('from within the statement is acknowledged', () =>
    withServiceOn({}, async (service, token) => {
      await whileInsertsWarn('trigger warn before insert on plants', async () => {
        expect((await create(service, token, 1)).status).toBe(200)
        expect((await create(service, token, 1)).status).toBe(409)
      })
    }))

  test(
    'from its commit is of unknown outcome',
    () =>
      withServiceOn({}, async (service, token) => {
        const atCommit =
          'constraint trigger warn after insert or update on batches deferrable initially deferred'
        await whileInsertsWarn(atCommit, async () => {
          const { status, json } = await create(service, token, 1)
          expect(status).toBe(503)
          expect(json).toMatchObject({
            message: expect.stringContaining('whether it was done is not known'),
          })
        })
        expect((await list(service, token)).text).toBe('[{"name":"1"}]')
      }),
    30_000,
  )
})

describe('a statement that the server knows otherwise than we do, as behind a pooler', () => {
  test('is sent on another connection if its name is taken', () =>
    whileNamesAreTaken(async (release) => {
      await withServiceOn({}, async (service, token) => {
        await list(service, token)
        await release()
        expect((await create(service, token, 1)).status).toBe(200)
        expect((await service.call('GET', '/readyz')).status).toBe(200)
      })
    }))

  test('is sent on another connection if it is gone', () =>
    withServiceOn({}, async (service, token) => {
      await server.sql(
        `create function forget() returns trigger language plpgsql as $$
           begin execute 'deallocate all'; return new; end $$;
         create trigger forget after insert on plants for each row execute function forget()`,
      )
      const statuses: number[] = []
      for (const id of [1, 2, 3]) statuses.push((await create(service, token, id)).status)
      await server.sql('drop function forget cascade')
      expect(statuses).toEqual([200, 200, 200])
    }))

  test(
    'is told by /readyz, if that keeps every write from being done',
    () =>
      whileNamesAreTaken(() =>
        withServiceOn({}, async (service, token) => {
          expect((await create(service, token, 1)).status).toBe(503)
          expect((await service.call('GET', '/readyz')).status).toBe(503)
        }),
      ),
    30_000,
  )

  test('is why a store is not opened, from its second connection on', async () => {
    await server.sql(
      `create sequence logins;
       grant usage on sequence logins to public;
       create function take_name() returns event_trigger language plpgsql as $$
         begin
           if nextval('logins') > 1 then execute 'prepare greeting as select 1'; end if;
         end $$;
       create event trigger take_name on login execute function take_name()`,
    )
    const opened = startTestService(at(`127.0.0.1:${server.port}`))
    try {
      expect(await opened.catch(({ message }) => message)).toContain(
        `127.0.0.1:${server.port} mixes up prepared statements, as a pooler does`,
      )
    } finally {
      await server.sql('drop function take_name cascade; drop sequence logins')
    }
  })

  /** Each new connection finds the names of our statements taken, until they are released. */
  async function whileNamesAreTaken(
    work: (release: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    await server.sql(
      `create function take_names() returns event_trigger language plpgsql as $$
         begin
           execute 'prepare create_plants as select 1';
           execute 'prepare delete_plants as select 1';
           execute 'prepare probe as select 1';
         end $$;
       create event trigger take_names on login execute function take_names()`,
    )
    const release = async (): Promise<void> => {
      await server.sql('drop function if exists take_names cascade')
    }
    await work(release).finally(release)
  }
})

describe('a password that is changed in its file and in the database', () => {
  test('is used by new connections without a restart, beside old ones and without any', async () => {
    const file = join(folder(), 'passwords')
    const setPassword = async (password: string): Promise<void> => {
      writeFileSync(file, `*:*:*:plants:${password}\n`, { mode: 0o600 })
      await server.sql(`alter role plants password '${password}'`)
    }
    await setPassword('secret')
    const location = readStoreLocation(`postgres://plants@127.0.0.1:${server.port}/plants`, {
      PGPASSFILE: file,
    }) as StoreLocation
    const service = await startTestService(location)
    try {
      const token = await service.tokenFor('a')
      expect((await create(service, token, 1)).status).toBe(200)
      const ours = "from pg_stat_activity where application_name = 'plants'"

      await setPassword('second')
      const unlock = await lockPlants()
      const lists = [1, 2, 3, 4, 5, 6].map((limit) =>
        service.call('GET', `/plants?limit=${limit}`, { token }),
      )
      await until('six lists wait, most of them on new connections', async () => {
        const waiting = await server.sql(`select 1 ${ours} and wait_event_type = 'Lock'`)
        return waiting.length === 6
      })
      await unlock()
      expect((await Promise.all(lists)).map(({ status }) => status)).toEqual(Array(6).fill(200))

      await setPassword('third')
      await server.sql(`select pg_terminate_backend(pid) ${ours}`)
      expect((await create(service, token, 2)).status).toBe(200)
    } finally {
      await service.stop()
      await setPassword('secret')
      await emptied(server.url())
    }
  }, 30_000)
})

describe('among several hosts', () => {
  test('the primary is found behind a standby, a host that refuses and one that never answers', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    const { port } = mute.address() as { port: number }
    const hosts = `127.0.0.1:${standby.port},127.0.0.1:1,127.0.0.1:${port},127.0.0.1:${server.port}`
    await withServiceOn({ hosts }, async (service, token) => {
      const [{ status }, elapsedMs] = await timed(create(service, token, 1))
      expect(status).toBe(200)
      expect(elapsedMs).toBeLessThan(1000)
      expect(service.logged.filter((line) => line.includes('connected'))).toEqual([
        `note "connected to the database at 127.0.0.1:${server.port} (no TLS)"`,
      ])
    })
    mute.close()
  }, 30_000)

  test('a standby alone is refused, with each host named', async () => {
    const hosts = `127.0.0.1:${standby.port},127.0.0.1:1`
    await expect(startTestService(at(hosts))).rejects.toThrow(
      `127.0.0.1:${standby.port} will not do: it is a standby, which takes no writes; 127.0.0.1:1 refuses connections`,
    )
  })

  test('each is used if each takes writes, and one that fails is left out until it is back', async () => {
    const [one, other] = [await startTcpProxy(server.port), await startTcpProxy(server.port)]
    const hosts = `127.0.0.1:${one.port},127.0.0.1:${other.port}`
    await withServiceOn(
      { hosts, parameters: 'target_session_attrs=any' },
      async (service, token) => {
        const load = new Load([service.url], token)
        load.start(8)
        const connected = (): string =>
          service.logged.filter((line) => line.includes('connected to the database')).join()
        await until('both are used', () =>
          [one, other].every(({ port }) => connected().includes(`127.0.0.1:${port}`)),
        )
        await load.further(100)
        await other.close()
        other.cut()
        await load.further(100)
        await load.stop()
        expect(await load.findings()).toEqual(nothingWrong)
      },
    )
    await one.close()
  }, 60_000)
})

describe('a network that falls silent', () => {
  let proxy: TcpProxy
  beforeAll(async () => {
    proxy = await startTcpProxy(server.port)
  })
  afterAll(() => proxy.close())

  test(
    'in the middle of queries ends them with 503 in time, and is forgotten once it speaks again',
    () =>
      withServiceOn({ hosts: `127.0.0.1:${proxy.port}` }, async (service, token) => {
        expect((await create(service, token, 1)).status).toBe(200)
        proxy.freeze()
        const [answers, elapsedMs] = await timed(
          Promise.all([
            ...Array.from({ length: 8 }, (_, n) => create(service, token, 10 + n)),
            ...Array.from({ length: 4 }, () => list(service, token)),
            service.call('DELETE', '/plants/1', { token }),
            service.call('GET', '/readyz'),
          ]),
        )
        expect(answers.map(({ status }) => status)).toEqual(Array(14).fill(503))
        for (const { headers, json } of answers) {
          expect(headers.get('retry-after')).toBe('1')
          expect(json).toMatchObject({
            error: 503,
            message: expect.stringMatching(/^The store .*\.$/),
          })
        }
        expect(elapsedMs).toBeLessThan(15_000)
        proxy.thaw()
        expect((await create(service, token, 50)).status).toBe(200)
        expect((await list(service, token)).status).toBe(200)
      }),
    60_000,
  )

  test('does not hold up the end of a store whose writes were given up', async () => {
    const store = await openStore(at(`127.0.0.1:${proxy.port}`), storeOptions)
    const plant = { id: 1n, name: 'x', tag: null, idempotencyKey: null }
    await store.plants.create('a', plant)
    proxy.freeze()
    const refusal = await store.plants.delete('a', 1n).catch((failure: Failure) => failure.refusal)
    expect(refusal).toBe('outcome-unknown')
    const [, elapsedMs] = await timed(store.close())
    // Its connection would be kept for a minute.
    expect(elapsedMs).toBeLessThan(20_000)
    proxy.thaw()
    await emptied(server.url())
  }, 60_000)

  test(
    'once, on every connection, holds up writes for as long as an answer may take, and no longer',
    () =>
      withServiceOn(
        { hosts: `127.0.0.1:${proxy.port}`, parameters: 'pool_max_conns=5' },
        async (service, token) => {
          const tokens = await Promise.all(
            Array.from({ length: 12 }, (_, n) => service.tokenFor(`account ${n}`)),
          )
          const createAll = (id: number): Promise<Answer[]> =>
            Promise.all(tokens.map((each) => create(service, each, id)))
          await createAll(1)
          // All that writes may use at once: two batches of creates, and two of deletes.
          const unlock = await lockPlants()
          const answers = Promise.all([
            createAll(2),
            Promise.all(tokens.map((each) => remove(service, each, 1))),
          ])
          await until('four batches wait', async () => {
            const waiting =
              "select 1 from pg_stat_activity where application_name = 'plants' and wait_event_type = 'Lock'"
            return (await server.sql(waiting)).length === 4
          })
          proxy.freezePresent()
          await unlock()
          const [[created, removed], elapsedMs] = await timed(answers)
          expect(created.map(({ status }) => status)).toEqual(Array(12).fill(200))
          expect(removed.map(({ status }) => status)).toEqual(Array(12).fill(204))
          expect(elapsedMs).toBeLessThan(5000)
          proxy.cut()
          proxy.thaw()
          expect((await create(service, token, 1)).status).toBe(200)
        },
      ),
    30_000,
  )
})

describe('a write whose answer is lost', () => {
  let proxy: TcpProxy
  beforeAll(async () => {
    proxy = await startTcpProxy(server.port)
  })
  afterAll(() => proxy.close())

  /**
   * Loses the answer to the writes: they are done, then something else happens, then the connection
   * breaks. Resolves to what the service answers.
   */
  async function answersOf(
    writes: () => Promise<Answer>[],
    done: string,
    meanwhile: () => Promise<unknown> = async () => {},
  ): Promise<Answer[]> {
    proxy.freezeReplies()
    const answers = Promise.all(writes())
    await until('the writes are done', async () => (await server.sql(done)).length === 1)
    await meanwhile()
    proxy.cut()
    proxy.thaw()
    return await answers
  }

  const isThere = (id: number): string => `select 1 from plants where id = ${id}`
  const isGone = (id: number): string => `select 1 where not exists (${isThere(id)})`

  /** A service behind the proxy, and one of another client beside it. */
  const withServices = (
    use: (service: TestService, token: string, other: TestService) => Promise<void>,
  ): Promise<void> =>
    withServiceOn({ hosts: `127.0.0.1:${proxy.port}` }, async (service, token) => {
      const other = await startTestService(at(`127.0.0.1:${server.port}`))
      try {
        await use(service, token, other)
      } finally {
        await other.stop()
      }
    })

  test('is answered as done', () =>
    withServices(async (service, token) => {
      expect((await list(service, token)).text).toBe('[]')
      const [created] = await answersOf(() => [create(service, token, 1)], isThere(1))
      expect(created?.status).toBe(200)
      expect((await create(service, token, 1)).status).toBe(409)
      const [deleted] = await answersOf(() => [remove(service, token, 1)], isGone(1))
      expect(deleted?.status).toBe(204)
      expect((await remove(service, token, 1)).status).toBe(404)
    }))

  test('is answered for itself, among those that shared its commit', () =>
    withServices(async (service, token) => {
      expect((await create(service, token, 1)).status).toBe(200)
      const creates = await answersOf(
        () => [create(service, token, 1), create(service, token, 2)],
        isThere(2),
      )
      expect(creates.map(({ status }) => status)).toEqual([409, 200])
      const removes = await answersOf(
        () => [remove(service, token, 1), remove(service, token, 3)],
        isGone(1),
      )
      expect(removes.map(({ status }) => status)).toEqual([204, 404])
    }))

  test('does not delete the plant that another client has created meanwhile', () =>
    withServices(async (service, token, other) => {
      expect((await create(service, token, 7)).status).toBe(200)
      const [deleted] = await answersOf(
        () => [remove(service, token, 7)],
        isGone(7),
        async () => expect((await create(other, token, 7)).status).toBe(200),
      )
      expect(deleted?.status).toBe(204)
      expect((await list(service, token)).text).toBe('[{"name":"7"}]')
    }))

  test('does not delete it either if the first attempt found no plant', () =>
    withServices(async (service, token, other) => {
      expect((await create(service, token, 1)).status).toBe(200)
      const answers = await answersOf(
        () => [remove(service, token, 7), remove(service, token, 1)],
        isGone(1),
        async () => expect((await create(other, token, 7)).status).toBe(200),
      )
      expect(answers.map(({ status }) => status)).toEqual([404, 204])
      expect((await list(service, token)).text).toBe('[{"name":"7"}]')
    }))

  test('does not create the plant again that another client has deleted meanwhile', () =>
    withServices(async (service, token, other) => {
      expect((await list(service, token)).text).toBe('[]')
      const [created] = await answersOf(
        () => [create(service, token, 7)],
        isThere(7),
        async () => expect((await remove(other, token, 7)).status).toBe(204),
      )
      expect(created?.status).toBe(200)
      expect((await list(service, token)).text).toBe('[]')
    }))
})

describe('an attempt that arrives late', () => {
  // Two ways to one server, one of which is silent at a time. The silent way keeps the first
  // attempt back; it is given up when its time is over, or when its connection breaks.
  test.each([
    ['after a silence', () => {}],
    ['after its connection broke', (way: TcpProxy) => way.cutClients()],
  ])(
    'undoes nothing of what was acknowledged since: %s',
    async (_when, giveUp) => {
      const [one, other] = [await startTcpProxy(server.port), await startTcpProxy(server.port)]
      other.freeze()
      await withServiceOn(
        { hosts: `127.0.0.1:${one.port},127.0.0.1:${other.port}` },
        async (service, token) => {
          await create(service, token, 7)
          one.freeze()
          const deleted = remove(service, token, 7)
          await Bun.sleep(100)
          other.thaw()
          giveUp(one)
          expect((await deleted).status).toBe(204)
          expect((await create(service, token, 7)).status).toBe(200)
          // Now the first delete arrives.
          one.thaw()
          await Bun.sleep(500)
          expect((await list(service, token)).text).toBe('[{"name":"7"}]')

          other.freeze()
          const created = create(service, token, 8)
          await Bun.sleep(100)
          giveUp(other)
          expect((await created).status).toBe(200)
          expect((await remove(service, token, 8)).status).toBe(204)
          other.thaw()
          await Bun.sleep(500)
          expect((await list(service, token)).text).toBe('[{"name":"7"}]')
        },
      )
      await one.close()
      await other.close()
    },
    60_000,
  )
})

describe('an attempt that is still at work when the next one comes', () => {
  test('is waited for, and its outcome is the answer', async () => {
    const proxy = await startTcpProxy(server.port)
    await withServiceOn({ hosts: `127.0.0.1:${proxy.port}` }, async (service, token) => {
      expect((await create(service, token, 7)).status).toBe(200)
      const waiting = async (count: number): Promise<boolean> =>
        (
          await server.sql(
            "select 1 from pg_locks where not granted and relation = 'plants'::regclass",
          )
        ).length === count
      const unlock = await lockPlants()
      const deleted = remove(service, token, 7)
      await until('the first attempt waits', () => waiting(1))
      proxy.cut()
      await until('the second attempt waits', () => waiting(2))
      await unlock()
      expect((await deleted).status).toBe(204)
      await until('both have ended', () => waiting(0))
      expect(await server.sql("select done from batches where done = '{7}'")).toHaveLength(2)
    })
    await proxy.close()
  }, 30_000)
})

describe('what is known of batches', () => {
  test('is kept for an hour, and then deleted by later ones of the group', () =>
    withServiceOn({}, async (service, token) => {
      const nowMs = service.clock.wallMs()
      await server.sql('delete from batches')
      await remove(service, token, 1)
      const [batch] = await server.sql('select account as group from batches')
      const group = String(batch?.['group'])
      const fill = [
        [group, 3_601_000],
        [group, 3_500_000],
        ['another', 3_601_000],
      ] as const
      for (const [name, ageMs] of fill)
        await server.sql(
          `insert into batches select '${name}', ${nowMs} - ${ageMs}, n from generate_series(1, 150) as n`,
        )
      const kept = async (name: string, ageMs: number): Promise<unknown> => {
        const [row] = await server.sql(
          `select count(*)::int as kept from batches where account = '${name}' and begun_at_ms = ${nowMs} - ${ageMs}`,
        )
        return row?.['kept']
      }
      await until('the old ones are deleted', async () => {
        await remove(service, token, 1)
        return (await kept(group, 3_601_000)) === 0
      })
      // Further batches look for old ones too.
      for (let n = 0; n < 300; n += 1) await remove(service, token, 1)
      expect(await kept(group, 3_500_000)).toBe(150)
      expect(await kept('another', 3_601_000)).toBe(150)
    }))
})

describe('a standby that stops answering the primary', () => {
  test('ends writes with 503, leaves lists alone, and costs the database no more connections than stated', async () => {
    await standby.makeSynchronous()
    await withServiceOn({}, async (service, token) => {
      const tokens = await Promise.all(
        Array.from({ length: 30 }, (_, n) => service.tokenFor(`account ${n}`)),
      )
      await list(service, token)
      standby.pause()
      const endMs = performance.now() + 9000
      const writers = tokens.map(async (each, n) => {
        const statuses = new Set<number>()
        for (let id = 0; performance.now() < endMs; id += 1)
          statuses.add((await create(service, each, id * 100 + n)).status)
        return [...statuses]
      })
      const slowestMs = await slowestList(service, token, endMs)
      const [held] = await server.sql(
        "select count(*)::int as held from pg_stat_activity where application_name = 'plants'",
      )
      expect(held?.['held']).toBeLessThanOrEqual(20)
      for (const statuses of await Promise.all(writers)) expect(statuses).toEqual([503])
      expect(slowestMs).toBeLessThan(2000)
      standby.resume()
      expect((await create(service, token, 1)).status).toBe(200)
    })
    await server.sql('alter system reset synchronous_standby_names')
    await server.sql('select pg_reload_conf()')
  }, 60_000)

  async function slowestList(service: TestService, token: string, endMs: number): Promise<number> {
    let slowestMs = 0
    while (performance.now() < endMs) {
      const [{ status }, elapsedMs] = await timed(list(service, token))
      expect(status).toBe(200)
      slowestMs = Math.max(slowestMs, elapsedMs)
      await Bun.sleep(20)
    }
    return slowestMs
  }
})

describe('a host that never lets a connection end', () => {
  test('holds up neither the start, nor an operation, nor the end', async () => {
    // Passes on everything, but keeps the client's side open for ever.
    const relay = createServer({ allowHalfOpen: true }, (client) => {
      const target = connect({ port: standby.port, host: '127.0.0.1', allowHalfOpen: true })
      client.pipe(target)
      target.pipe(client, { end: false })
      for (const socket of [client, target]) socket.on('error', () => {})
    }).listen(0, '127.0.0.1')
    const { port } = relay.address() as { port: number }
    const [refused, elapsedMs] = await timed(
      startTestService(at(`127.0.0.1:${port}`)).catch(String),
    )
    expect(refused).toContain('it is a standby, which takes no writes')
    expect(elapsedMs).toBeLessThan(3000)
    await withServiceOn(
      { hosts: `127.0.0.1:${port},127.0.0.1:${server.port}` },
      async (service, token) => {
        await server.sql(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'plants'",
        )
        expect((await create(service, token, 1)).status).toBe(200)
      },
    )
    relay.close()
  }, 30_000)
})

describe('a list', () => {
  test(
    'is 503 if the store fails before its first byte',
    () =>
      withServiceOn({}, async (service, token) => {
        expect((await list(service, token)).status).toBe(200)
        await server.stop('immediate')
        const { status, json } = await list(service, token)
        expect([status, json]).toEqual([
          503,
          { error: 503, message: 'The store is not available; nothing was done, try again.' },
        ])
        await server.start()
        expect((await list(service, token)).text).toBe('[]')
      }),
    60_000,
  )

  test(
    'is cut off if the store fails later, so that no part is taken for the whole',
    () =>
      withServiceOn({}, async (service, token) => {
        const name = 'n'.repeat(20_000)
        await server.sql(
          `insert into plants select 'a', id, '${name}' from generate_series(1, 3000) as id`,
        )
        const response = await fetch(`${service.url}/plants`, {
          headers: { Authorization: `Bearer ${token}` },
        })
        expect(response.status).toBe(200)
        const reader = (response.body as ReadableStream<Uint8Array>).getReader()
        await reader.read()
        await server.stop('immediate')
        const readAll = async (): Promise<void> => {
          for (let done = false; !done; ) ({ done } = await reader.read())
        }
        await expect(readAll()).rejects.toThrow()
        await server.start()
      }),
    60_000,
  )
})

describe('a database that is busy', () => {
  test(
    'past the statement timeout is 503, and nothing was done',
    () =>
      withServiceOn({}, async (service, token) => {
        await list(service, token)
        const unlock = await lockPlants()
        const [{ status, json }, elapsedMs] = await timed(create(service, token, 1))
        await unlock()
        expect([status, json]).toEqual([
          503,
          { error: 503, message: 'The store is not available; nothing was done, try again.' },
        ])
        expect(elapsedMs).toBeLessThan(4000)
        expect((await list(service, token)).text).toBe('[]')
      }),
    30_000,
  )

  test(
    'with every connection in use answers all that wait in time, and goes on afterwards',
    () =>
      withServiceOn({ parameters: 'pool_max_conns=2' }, async (service, token) => {
        await list(service, token)
        const unlock = await lockPlants()
        const [answers, elapsedMs] = await timed(
          Promise.all(
            Array.from({ length: 40 }, (_, n) =>
              n % 2 === 0
                ? create(service, token, n)
                : service.call('GET', `/plants?limit=${n}`, { token }),
            ),
          ),
        )
        await unlock()
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
        expect(elapsedMs).toBeLessThan(15_000)
        expect((await create(service, token, 100)).status).toBe(200)
        expect((await list(service, token)).text).toBe('[{"name":"100"}]')
      }),
    60_000,
  )

  test(
    'with no connection left for us is waited for',
    () =>
      withServiceOn({}, async (service, token) => {
        await list(service, token)
        await server.sql('alter role plants connection limit 0')
        await server.sql(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'plants'",
        )
        const answer = create(service, token, 1)
        await Bun.sleep(500)
        await server.sql('alter role plants connection limit -1')
        expect((await answer).status).toBe(200)
      }),
    30_000,
  )
})
