// The service on PostgreSQL as a black box: how it is told where its store is, what it says if that
// cannot be used, and TLS to it.
import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type PostgresServer, sharedPostgres, startPostgres } from '../support/postgres.ts'
import { accepts, freePort, launcher, run, start } from '../support/process.ts'
import { call, folderMaker } from '../support/service.ts'
import { prepare } from '../support/stores.ts'
import { startTcpProxy } from '../support/tcpProxy.ts'

const folder = folderMaker()

let prepared: Promise<string> | undefined
/** The URL of a database of its own, with its password. */
function database(): Promise<string> {
  prepared ??= (async () => {
    const url = await (await sharedPostgres()).createDatabase(`process_${process.pid}`)
    await prepare(url)
    return url
  })()
  return prepared
}

type Environment = Readonly<Record<string, string>>

async function refusal(
  store: string,
  environment: Environment = {},
): Promise<{ code: number | null; err: string }> {
  const { code, out, err } = await run(
    ['serve', '--port', '0', '--store', store],
    folder(),
    environment,
  )
  expect(out).toBe('')
  expect(err.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
  expect(err).not.toMatch(/secret|wrong-password|\n\s+at /)
  return { code, err }
}

/** Serves, answers one request from its store, and stops. Resolves to all its output. */
async function serves(environment: Environment): Promise<string> {
  const server = start(['serve', '--port', '0'], folder(), environment)
  const url = await server.url
  expect((await call(url, 'GET', '/readyz')).status).toBe(200)
  server.process.kill('SIGTERM')
  const { code, out, err } = await server.finished
  expect(code).toBe(0)
  return out + err
}

describe('a store on PostgreSQL', () => {
  test('is named by its URL, and its password is never shown', async () => {
    const said = await serves({
      PLANTS_STORE: `${await database()}?pool_max_conns=3&sslmode=prefer`,
    })
    expect(said).toMatch(/the store is postgres:\/\/plants@127\.0\.0\.1:\d+\/process_\d+/)
    expect(said).toContain('connected to the database at 127.0.0.1:')
    expect(said).toMatch(
      /issue one with: \/\S+\/bin\/plants token issue --account NAME --store 'postgres:\/\/plants@127\.0\.0\.1:\d+\/process_\d+\?pool_max_conns=3&sslmode=prefer'/,
    )
    expect(said).not.toContain('secret')
  })

  test("takes what its URL leaves out from PostgreSQL's environment variables", async () => {
    const { port, pathname } = new URL(await database())
    const environment = {
      PGHOST: '127.0.0.1',
      PGPORT: port,
      PGUSER: 'plants',
      PGDATABASE: pathname.slice(1),
    }
    expect(
      await serves({ PLANTS_STORE: 'postgres://', PGPASSWORD: 'secret', ...environment }),
    ).not.toContain('secret')
    const two = { ...environment, PGHOST: '127.0.0.1,127.0.0.1', PGPORT: `1,${port}` }
    expect(await serves({ PLANTS_STORE: 'postgres://', PGPASSWORD: 'secret', ...two })).toContain(
      `at 127.0.0.1:${port}`,
    )
  })

  test('takes its password from a file', async () => {
    const { port, pathname } = new URL(await database())
    const file = join(folder(), 'passwords')
    writeFileSync(
      file,
      `# comment\nelsewhere:*:*:plants:wrong\n127.0.0.1:${port}:*:plants:secret\n`,
      { mode: 0o600 },
    )
    const store = `postgres://plants@127.0.0.1:${port}${pathname}`
    await serves({ PLANTS_STORE: store, PGPASSFILE: file })
    chmodSync(file, 0o644)
    expect(await refusal(store, { PGPASSFILE: file })).toEqual({
      code: 2,
      err: `plants: --store must be a URL whose password file ${file} is closed to others (chmod 0600), not "postgres://[redacted]".\nSee: ${launcher} serve --help\n`,
    })
  })
})

test.each([
  'serve postgres://u:secret@h/db',
  'serve --stroe postgres://u:secret@h/db',
  'serve --host postgres://u:secret@h/db',
  'postgres://u:secret@h/db',
  'token list --account x postgres://u:se"secret@h/db',
  'copy postgres://u:secret@h/db postgres://u:secret@h/other',
])('a password in the wrong place is not repeated: %s', async (line) => {
  const { code, out, err } = await run(line.split(' '), folder())
  expect([code, out]).toEqual([2, ''])
  expect(err).not.toContain('secret')
})

describe('plants serve refuses a store', () => {
  test.each([
    [
      'redis://user:secret@host/x',
      'sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE, not "redis://[redacted]".',
    ],
    ['sqlite:data/', 'sqlite:FILE, such as sqlite:data/plants.db, not "sqlite:data/".'],
    ['mysql:x', 'sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE, not "mysql:x".'],
    ['mysql://root:secret', 'sqlite:FILE or postgres://'],
    ['postgres://host/db', 'a URL that names a user'],
    ['postgres://u:secret@host:0/db', 'a URL whose ports (or PGPORT) are numbers from 1 to 65535'],
    [
      'postgres://u:secret@host:70000/db',
      'a URL whose ports (or PGPORT) are numbers from 1 to 65535',
    ],
    ['postgres://u:secret@a,,b/db', 'a URL whose hosts are HOST or HOST:PORT'],
    ['postgres://u:sec@secret@host/db', 'a URL whose hosts are HOST or HOST:PORT'],
    ['postgres://u:sec/secret@host/db', 'a URL that names a user'],
    ['postgres://u:%zz@host/db', 'a URL whose percent signs each begin an escape'],
    [
      'postgres://u:secret@host/db?sslmode=maybe',
      'a URL whose sslmode (or PGSSLMODE) is one of disable, prefer, require, verify-ca, verify-full',
    ],
    [
      'postgres://u:secret@host/db?password=secret',
      'a URL without the parameter password; known are sslmode, ',
    ],
    [
      'postgres://u:secret@host/db?sslrootcert=/nowhere',
      'a URL whose sslrootcert (or PGSSLROOTCERT) is a file that can be read',
    ],
    [
      'postgres://u:secret@host/db?target_session_attrs=standby',
      'a URL whose target_session_attrs is one of primary, ',
    ],
    [
      'postgres://u:secret@host/db?pool_max_conns=0',
      'a URL whose pool_max_conns is a number from 1 to 999',
    ],
    [
      'postgres://u:secret@host/db?sslmode=verify-ca',
      'a URL whose sslrootcert names a file where sslmode is verify-ca',
    ],
    [
      'postgres://u:secret@host/db?sslmode=require&sslrootcert=system',
      'a URL whose sslmode is verify-full where sslrootcert is',
    ],
  ])('of a wrong URL with exit code 2: %s', async (store, sentence) => {
    const { code, err } = await refusal(store)
    expect(code).toBe(2)
    expect(err).toStartWith(`plants: --store must be ${sentence}`)
  })

  test('that says no, with exit code 1 and one sentence', async () => {
    const url = new URL(await database())
    const where = `127.0.0.1:${url.port}`
    for (const [store, sentence] of [
      [
        `postgres://plants:wrong-password@${where}${url.pathname}`,
        `${where} refuses the user "plants" or the password`,
      ],
      [
        `postgres://nobody:wrong-password@${where}${url.pathname}`,
        `${where} refuses the user "nobody" or the password`,
      ],
      [
        `postgres://plants@${where}${url.pathname}`,
        `${where} wants a password for the user "plants"`,
      ],
      [
        `postgres://plants:secret@${where}/nowhere`,
        `${where} has no database "nowhere"; create it`,
      ],
      [`postgres://plants:secret@127.0.0.1:1/x`, '127.0.0.1:1 refuses connections'],
      [`postgres://plants:secret@name.invalid/x`, 'name.invalid:5432 is a name that is not known'],
      [
        `${url}?sslmode=require`,
        `${where} offers no TLS; use sslmode=disable where the network is trusted`,
      ],
    ]) {
      const { code, err } = await refusal(store ?? '', { HOME: '/nowhere' })
      expect(err).toContain(` cannot be used: ${sentence}`)
      expect(err).toEndWith('.\n')
      expect(code).toBe(1)
    }
  }, 30_000)

  test('that accepts connections and never answers, within the deadline', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    const { port } = mute.address() as { port: number }
    const startedMs = performance.now()
    const { code, err } = await refusal(`postgres://plants:secret@127.0.0.1:${port}/x`)
    expect(code).toBe(1)
    expect(err).toContain(`127.0.0.1:${port} does not answer`)
    expect(performance.now() - startedMs).toBeLessThan(5000)
    mute.close()
  })

  test('that could not keep its promises', async () => {
    const server = await sharedPostgres()
    const url = await database()
    for (const [setting, sentence] of [
      [
        'synchronous_commit = off',
        'it acknowledges writes early (synchronous_commit = off); set synchronous_commit = on',
      ],
      [
        'synchronous_commit = local',
        'it acknowledges writes early (synchronous_commit = local); set synchronous_commit = on',
      ],
      [
        'default_transaction_read_only = on',
        'it takes no writes (default_transaction_read_only is on)',
      ],
    ]) {
      await server.sql(`alter role plants set ${setting}`)
      const { code, err } = await refusal(url)
      await server.sql('alter role plants reset all')
      expect(err).toContain(sentence ?? '')
      expect(code).toBe(1)
    }
    await server.sql(
      "create database latin owner plants encoding 'LATIN1' locale 'C' template template0",
      'postgres',
    )
    expect((await refusal(server.url('latin'))).err).toContain(
      'the database is in LATIN1; create it in UTF8',
    )
  })
})

test('a command that the database refuses names the store and the cause', async () => {
  const server = await sharedPostgres()
  const url = await server.createDatabase(`refused_${process.pid}`)
  await prepare(url)
  await server.sql('revoke insert on tokens from plants', `refused_${process.pid}`)
  for (const line of ['token issue --account a', 'serve --port 0 --first-token']) {
    const { code, out, err } = await run([...line.split(' '), '--store', url], folder())
    expect([code, out]).toEqual([1, ''])
    const sentence =
      /plants: The store postgres:\/\/plants@\S+ cannot be used: it refuses the user "plants" a right that this needs; .*\n$/
    expect(err).toMatch(sentence)
    expect(err).not.toMatch(/secret|try again/)
  }
})

describe('a request that comes while the store is being opened', () => {
  test('waits, and is answered', async () => {
    const url = new URL(await database())
    const proxy = await startTcpProxy(Number(url.port))
    proxy.freeze()
    url.port = String(proxy.port)
    const port = await freePort()
    const server = start(['serve', '--port', port, '--store', url.href], folder())
    await accepts(port)
    const answer = call(`http://127.0.0.1:${port}`, 'GET', '/readyz')
    await Bun.sleep(200)
    expect(server.out()).toBe('')
    proxy.thaw()
    expect((await answer).status).toBe(200)
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
    await proxy.close()
  })

  test('is cut if the store cannot be opened', async () => {
    const mute = createServer(() => {}).listen(0, '127.0.0.1')
    const { port: mutePort } = mute.address() as { port: number }
    const port = await freePort()
    const server = start(
      ['serve', '--port', port, '--store', `postgres://u:secret@127.0.0.1:${mutePort}/x`],
      folder(),
    )
    await accepts(port)
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow()
    const { code, out, err } = await server.finished
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^plants: The store .* does not answer\.\n$/)
    mute.close()
  })
})

describe('TLS to the database', () => {
  const certificates = join(import.meta.dir, '../support/certificates')
  let started: Promise<PostgresServer> | undefined
  const secured = (): Promise<PostgresServer> => {
    started ??= (async () => {
      const tls = { certFile: `${certificates}/server.crt`, keyFile: `${certificates}/server.key` }
      const server = await startPostgres({ tls })
      await prepare(server.url())
      return server
    })()
    return started
  }
  afterAll(async () => await (await started)?.dispose())

  const authority = `sslrootcert=${certificates}/authority.crt`
  const stranger = `sslrootcert=${certificates}/stranger.crt`

  test.each([
    ['127.0.0.1', ''],
    ['127.0.0.1', 'sslmode=prefer'],
    ['127.0.0.1', 'sslmode=require'],
    ['127.0.0.1', `sslmode=verify-ca&${authority}`],
    ['localhost', `sslmode=verify-full&${authority}`],
  ])('is used at %s with %j', async (host, parameters) => {
    const server = await secured()
    const store = `${server.url().replace('127.0.0.1', host)}?${parameters}`
    const running = start(['serve', '--port', '0', '--store', store], folder())
    await running.url
    const connections = await server.sql(
      "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'plants'",
    )
    running.process.kill('SIGTERM')
    expect((await running.finished).code).toBe(0)
    expect(connections.length).toBeGreaterThan(0)
    expect(connections.every(({ ssl }) => ssl === true)).toBe(true)
  })

  test('is not used with sslmode=disable', async () => {
    const server = await secured()
    const running = start(
      ['serve', '--port', '0', '--store', `${server.url()}?sslmode=disable`],
      folder(),
    )
    await running.url
    const connections = await server.sql(
      "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'plants'",
    )
    running.process.kill('SIGTERM')
    await running.finished
    expect(connections.map(({ ssl }) => ssl)).toContain(false)
  })

  test.each([
    ['127.0.0.1', `sslmode=verify-full&${authority}`, 'shows a certificate for another name'],
    ['localhost', `sslmode=verify-full&${stranger}`, 'shows a certificate that is not trusted'],
    ['localhost', 'sslmode=verify-full', 'shows a certificate that is not trusted'],
    ['127.0.0.1', `sslmode=verify-ca&${stranger}`, 'shows a certificate that is not trusted'],
    ['127.0.0.1', `sslmode=require&${stranger}`, 'shows a certificate that is not trusted'],
  ])('that cannot be trusted is refused: %s with %s', async (host, parameters, sentence) => {
    const server = await secured()
    const { code, err } = await refusal(`${server.url().replace('127.0.0.1', host)}?${parameters}`)
    expect(err).toContain(`${sentence}`)
    expect(code).toBe(1)
  })
})
