// The metrics of `plants serve`, as Prometheus would read them: what they count, what they never
// name, and where they are.
import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, renameSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { operations } from '../../src/contract/operations.ts'
import { refusals } from '../../src/contract/refusals.ts'
import { until } from '../support/clock.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { freePort, makeStore, type Running, run, start } from '../support/process.ts'
import { type Answer, type CallOptions, call, folderMaker } from '../support/service.ts'
import { prepare } from '../support/stores.ts'

const folder = folderMaker()

interface Measured {
  readonly home: string
  readonly server: Running
  readonly url: string
  readonly metricsUrl: string
  readonly token: string
  readonly readOnlyToken: string
}

/** A service with metrics, whose account is called "secret-account"; it is stopped at the end. */
async function withMetrics(
  use: (measured: Measured) => Promise<void>,
  store = 'sqlite:plants.db',
): Promise<void> {
  const home = folder()
  if (store.startsWith('sqlite:')) await makeStore(home)
  const issue = async (scopes: string): Promise<string> => {
    const words = ['token', 'issue', '--account', 'secret-account', '--scopes', scopes]
    return (await run([...words, '--store', store], home)).out.trim()
  }
  const [token, readOnlyToken] = [
    await issue('plants:read,plants:write'),
    await issue('plants:read'),
  ]
  const args = ['serve', '--port', '0', '--metrics-port', '0', '--store', store]
  const server = start(args, home)
  const url = await server.url
  const [, metricsUrl = ''] = /metrics are at (http:[^"]+)/.exec(server.err()) ?? []
  try {
    await use({ home, server, url, metricsUrl, token, readOnlyToken })
  } finally {
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  }
}

/** The value of every line, by the name with its labels. */
async function scraped(metricsUrl: string): Promise<Map<string, number>> {
  const answer = await call(metricsUrl, 'GET', '')
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const lines = answer.text.trimEnd().split('\n')
  return new Map(
    lines
      .filter((line) => !line.startsWith('#'))
      .map((line) => {
        const [, name = '', value] = /^(\S+) (\S+)$/.exec(line) ?? []
        expect(Number(value)).not.toBeNaN()
        return [name, Number(value)]
      }),
  )
}

/** Those lines whose name begins so, without that beginning and without zeros. */
function under(values: ReadonlyMap<string, number>, name: string): Record<string, number> {
  return Object.fromEntries(
    [...values]
      .filter(([each, value]) => each.startsWith(name) && value !== 0)
      .map(([each, value]) => [each.slice(name.length), value]),
  )
}

function plantOf(id: number, name = 'Monstera'): string {
  return JSON.stringify({ id, name })
}

describe('metrics', () => {
  test('count every request by its operation and its status, and every refusal by its reason', () =>
    withMetrics(async ({ url, metricsUrl, token, readOnlyToken }) => {
      const json = { token, body: plantOf(1) }
      const asked: readonly [string, string, string, CallOptions, keyof typeof refusals | null][] =
        [
          ['createPlant', 'POST', '/plants', json, null],
          ['createPlant', 'POST', '/plants', json, 'id-taken'],
          ['createPlant', 'POST', '/plants', json, 'id-taken'],
          ['createPlant', 'POST', '/plants', { token, body: '{}' }, 'input-invalid'],
          ['createPlant', 'POST', '/plants', { ...json, token: readOnlyToken }, 'scope-missing'],
          [
            'createPlant',
            'POST',
            '/plants',
            { ...json, headers: { 'Content-Type': 'text/plain' } },
            'media-type-unsupported',
          ],
          ['createPlant', 'POST', '/plants', { body: plantOf(1) }, 'token-missing'],
          ['listPlants', 'GET', '/plants', { token }, null],
          ['listPlants', 'HEAD', '/plants', { token }, null],
          ['listPlants', 'GET', '/plants', { token: 'plants_secret' }, 'token-refused'],
          ['deletePlant', 'DELETE', '/plants/1', { token }, null],
          ['deletePlant', 'DELETE', '/plants/1', { token }, 'plant-missing'],
          ['livez', 'GET', '/livez', {}, null],
          ['readyz', 'GET', '/readyz', {}, null],
          ['home', 'GET', '/', {}, null],
          ['openapi', 'GET', '/openapi.json', {}, null],
          ['docs', 'GET', operations.docs.path, {}, null],
          ['docsScript', 'GET', operations.docsScript.path, {}, null],
          ['docsStart', 'GET', operations.docsStart.path, {}, null],
          ['options', 'OPTIONS', '/plants', {}, null],
          ['none', 'GET', '/secret-path', {}, 'path-unknown'],
          ['none', 'PUT', '/plants', { token }, 'method-not-allowed'],
        ]
      expect(new Set(asked.map(([operation]) => operation))).toEqual(
        new Set([...Object.keys(operations), 'none']),
      )
      const requests: Record<string, number> = {}
      const durations: Record<string, number> = {}
      const refused: Record<string, number> = {}
      for (const [operation, method, target, options, reason] of asked) {
        const { status } = await call(url, method, target, {
          ...options,
          headers: { 'X-Request-Id': 'secret-request', ...options.headers },
        })
        const declared = operations[operation as keyof typeof operations]?.success.status
        expect(status).toBe(reason === null ? declared : refusals[reason].status)
        const counted = `operation="${operation}",status="${status}"`
        requests[`{${counted}}`] = (requests[`{${counted}}`] ?? 0) + 1
        const timed = `{operation="${operation}"}`
        durations[timed] = (durations[timed] ?? 0) + 1
        if (reason !== null)
          refused[`{reason="${reason}"}`] = (refused[`{reason="${reason}"}`] ?? 0) + 1
      }
      const values = await scraped(metricsUrl)
      expect(under(values, 'plants_http_requests_total')).toEqual(requests)
      expect(under(values, 'plants_http_request_duration_seconds_count')).toEqual(durations)
      const last = under(values, 'plants_http_request_duration_seconds_bucket')
      for (const [operation, count] of Object.entries(durations))
        expect(last[operation.replace('}', ',le="+Inf"}')]).toBe(count)
      expect(under(values, 'plants_refusals_total')).toEqual(refused)
      expect([...values.keys()].filter((name) => name.startsWith('plants_refusals'))).toHaveLength(
        Object.keys(refusals).length,
      )
      expect((await call(metricsUrl, 'GET', '')).text).not.toMatch(/secret|Monstera/)
    }))

  test.each([
    ['SQLite', async () => 'sqlite:plants.db'],
    [
      'PostgreSQL',
      async () => {
        const url = await (await sharedPostgres()).createDatabase(`metrics_${process.pid}`)
        await prepare(url)
        return url
      },
    ],
  ])('count the commits on %s, and the writes that shared them', async (_name, store) =>
    withMetrics(
      async ({ url, metricsUrl, token }) => {
        await call(url, 'GET', '/plants', { token })
        // The use of the token is noted beside the answer.
        const noted = async (): Promise<Map<string, number>> => {
          await call(url, 'GET', '/readyz')
          return await scraped(metricsUrl)
        }
        const before = await noted()
        const answers: Answer[] = []
        for (let id = 0; id < 5; id += 1)
          answers.push(await call(url, 'POST', '/plants', { token, body: plantOf(id) }))
        answers.push(
          ...(await Promise.all(
            Array.from({ length: 50 }, (_, n) =>
              call(url, 'POST', '/plants', { token, body: plantOf(100 + n) }),
            ),
          )),
        )
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
        const after = await noted()
        const added = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0)
        const commits = added('plants_store_writes_per_commit_count')
        expect(added('plants_store_writes_per_commit_sum')).toBe(answers.length)
        expect(commits).toBeWithin(6, answers.length + 1)
        expect(added('plants_store_writes_per_commit_bucket{le="+Inf"}')).toBe(commits)
        expect(added('plants_store_commit_seconds_count')).toBe(commits)
        expect(added('plants_store_commit_seconds_sum')).toBeGreaterThan(0)
        expect(after.get('plants_store_waiting_writes')).toBe(0)
        expect(after.get('plants_store_up')).toBe(1)
        expect(after.get('plants_store_bytes')).toBeGreaterThan(10_000)
      },
      await store(),
    ),
  )

  test('tell that the store is down, and no size then', () =>
    withMetrics(async ({ home, metricsUrl }) => {
      renameSync(join(home, 'plants.db'), join(home, 'elsewhere.db'))
      const values = await scraped(metricsUrl)
      expect(values.get('plants_store_up')).toBe(0)
      expect(values.has('plants_store_bytes')).toBe(false)
      renameSync(join(home, 'elsewhere.db'), join(home, 'plants.db'))
    }))

  test.skipIf(process.platform !== 'linux')('count the connections, and tell of the process', () =>
    withMetrics(async ({ server, url, metricsUrl }) => {
      expect((await scraped(metricsUrl)).get('plants_connections')).toBe(0)
      const sockets = [1, 2, 3].map(() => connect(Number(new URL(url).port), '127.0.0.1'))
      // Linux hands a connection to the service with its first bytes.
      for (const socket of sockets) {
        socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
        await once(socket, 'data')
      }
      const values = await scraped(metricsUrl)
      expect(values.get('plants_connections')).toBe(3)
      const proc = `/proc/${server.process.pid}`
      const residentKiB = Number(
        /^VmRSS:\s+(\d+)/m.exec(readFileSync(`${proc}/status`, 'utf8'))?.[1],
      )
      const ratio = (values.get('process_resident_memory_bytes') ?? 0) / 1024 / residentKiB
      expect(ratio).toBeWithin(0.7, 1.4)
      expect(values.get('process_virtual_memory_bytes')).toBeGreaterThan(residentKiB * 1024)
      expect(values.get('process_cpu_seconds_total')).toBeWithin(0.01, 60)
      const descriptors = readdirSync(`${proc}/fd`).length
      expect(values.get('process_open_fds')).toBeWithin(descriptors - 5, descriptors + 6)
      expect(values.get('process_max_fds')).toBeGreaterThan(descriptors)
      const startedMs = (values.get('process_start_time_seconds') ?? 0) * 1000
      expect(Date.now() - startedMs).toBeWithin(0, 60_000)
      for (const socket of sockets) socket.destroy()
      await until(
        'they are gone',
        async () => (await scraped(metricsUrl)).get('plants_connections') === 0,
      )
    }),
  )

  test('are all explained in docs/operations.md, and no others', () =>
    withMetrics(async ({ metricsUrl }) => {
      const { text } = await call(metricsUrl, 'GET', '')
      const told = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
      const documented = [
        ...readFileSync('docs/operations.md', 'utf8').matchAll(/^\| `((?:plants|process)_\w+)/gm),
      ].map(([, name]) => name)
      expect(documented.sort()).toEqual(told.sort())
    }))

  test.skipIf(Bun.which('promtool') === null)('are as Prometheus wants them', () =>
    withMetrics(async ({ url, metricsUrl, token }) => {
      await call(url, 'GET', '/plants', { token })
      const { text } = await call(metricsUrl, 'GET', '')
      const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
        input: text,
        encoding: 'utf8',
      })
      expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' })
    }),
  )
})

describe('the listener for metrics', () => {
  test('answers GET /metrics alone, on the loopback address, until the service has stopped', async () => {
    let gone = ''
    await withMetrics(async ({ url, metricsUrl }) => {
      gone = metricsUrl
      expect(metricsUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
      const { origin } = new URL(metricsUrl)
      expect((await call(origin, 'GET', '/plants')).status).toBe(404)
      expect((await call(origin, 'GET', '/')).status).toBe(404)
      expect((await call(origin, 'POST', '/metrics')).status).toBe(405)
      expect((await call(url, 'GET', '/metrics')).status).toBe(404)
    })
    await expect(fetch(gone)).rejects.toThrow()
  })

  test('is refused a port that is taken, and no new store is left behind', async () => {
    const home = folder()
    const port = await freePort()
    const { code, out, err } = await run(['serve', '--port', port, '--metrics-port', port], home)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toBe(
      `plants: Cannot listen on 127.0.0.1 port ${port}: another program listens there; choose another --metrics-port, or 0 for a free one.\n`,
    )
    expect(existsSync(join(home, 'plants.db'))).toBe(false)
  })

  test('takes its port from the environment too, and refuses what is none', async () => {
    const environment = { PLANTS_METRICS_PORT: '70000' }
    const { code, err } = await run(['serve', '--port', '0'], folder(), environment)
    expect(code).toBe(2)
    expect(err).toStartWith('plants: PLANTS_METRICS_PORT must be a number from 0 to 65535, not')
  })

  test.skipIf(process.platform !== 'linux')('is not there unless it is asked for', async () => {
    const server = start(['serve', '--port', '0', '--store', 'sqlite:plants.db'], folder())
    const { port } = new URL(await server.url)
    const proc = `/proc/${server.process.pid}`
    const sockets = readdirSync(`${proc}/fd`).flatMap((descriptor) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${proc}/fd/${descriptor}`))?.[1] ?? []
      } catch {
        return []
      }
    })
    const listening = readFileSync(`${proc}/net/tcp`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && sockets.includes(fields[9] ?? ''))
      .map((fields) => Number.parseInt(fields[1]?.split(':')[1] ?? '', 16))
    expect(listening).toEqual([Number(port)])
    expect(server.err()).not.toContain('metrics are at')
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  })
})
