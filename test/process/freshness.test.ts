// An answer holds every write that any process acknowledged before the request was sent, on new
// connections too. Others read the same list at that moment, because answers are shared then.
import { afterAll, describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { issueToken } from '../../src/domain/access.ts'
import type { Store } from '../../src/domain/store.ts'
import { scopes } from '../../src/domain/token.ts'
import { openStore } from '../../src/stores/open.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { type Running, start } from '../support/process.ts'
import { call, temporaryFolder } from '../support/service.ts'
import { locationOf, prepare, storeOptions } from '../support/stores.ts'

const folder = temporaryFolder()
const rounds = 400
const readers = 64
/** Two servers on one store, and that store, opened once more as the command line opens it. */
interface Doors {
  readonly servers: readonly Running[]
  readonly urls: readonly string[]
  readonly store: Store
}
const opened: Doors[] = []

afterAll(async () => {
  for (const { store, servers } of opened) {
    await store.close()
    for (const { process } of servers) process.kill('SIGTERM')
    for (const { finished } of servers) await finished
  }
  rmSync(folder, { recursive: true })
})

async function open(storeUrl: string): Promise<Doors> {
  const servers = [0, 1].map(() => start(['serve', '--port', '0', '--store', storeUrl], folder))
  const urls = await Promise.all(servers.map(({ url }) => url))
  const store = await openStore(locationOf(storeUrl), storeOptions)
  const doors = { servers, urls, store }
  opened.push(doors)
  return doors
}

async function newToken(
  store: Store,
  account: string,
): Promise<{ readonly id: string; readonly text: string }> {
  const { token, plain } = await issueToken(
    store.tokens,
    { account, label: '', scopes, lifetimeMs: null },
    Date.now(),
    randomBytes,
  )
  return { id: token.id, text: plain.reveal() }
}

/**
 * Runs `work` beside a process that lists without a pause through the first server, with the token
 * last given to `use`.
 */
async function besideReaders(
  url: string,
  work: (use: (token: string) => void) => Promise<void>,
): Promise<void> {
  const script = join(import.meta.dir, '../support/readers.ts')
  const child = spawn(process.execPath, [script, url, String(readers)], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  try {
    await work((token) => void child.stdin.write(`${token}\n`))
  } finally {
    child.stdin.end()
    await ended
  }
}

/** One answer on a connection of its own. */
function answerOnNewConnection(url: string, token: string): Promise<string> {
  const { port, hostname } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let received = ''
    socket.on('data', (data) => {
      received += data
    })
    socket.on('close', () => resolve(received))
    socket.on('error', reject)
    socket.write(
      `GET /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
  })
}

/** How often a list missed a write that another process had acknowledged before. */
async function missed(
  { urls, store }: Doors,
  times: number,
): Promise<{ missing: number; risen: number }> {
  const [here = '', there = ''] = urls
  const { text: token } = await newToken(store, 'writer')
  let missing = 0
  let risen = 0
  await besideReaders(here, async (use) => {
    use(token)
    for (let id = 0; id < times; id += 1) {
      const body = `{"id":${id},"name":"plant-${id}."}`
      expect((await call(there, 'POST', '/plants', { token, body })).status).toBe(200)
      if (!(await answerOnNewConnection(here, token)).includes(`plant-${id}.`)) missing += 1
      expect((await call(there, 'DELETE', `/plants/${id}`, { token })).status).toBe(204)
      if ((await answerOnNewConnection(here, token)).includes(`plant-${id}.`)) risen += 1
    }
  })
  return { missing, risen }
}

describe('beside many readers of the same list', () => {
  test('a plant that another process acknowledged is in the next list, and one that it deleted is not', async () => {
    const doors = await open(`sqlite:${folder}/plants.db`)
    expect(await missed(doors, rounds)).toEqual({ missing: 0, risen: 0 })
  }, 60_000)

  test('the same on PostgreSQL', async () => {
    const database = await (await sharedPostgres()).createDatabase(`freshness_${process.pid}`)
    await prepare(database)
    expect(await missed(await open(database), rounds / 4)).toEqual({ missing: 0, risen: 0 })
  }, 60_000)

  test('a token that was revoked is refused from the next request on', async () => {
    const { urls, store } = await open(`sqlite:${folder}/revoked.db`)
    const [url = ''] = urls
    const tokens = await Promise.all(
      Array.from({ length: rounds }, () => newToken(store, 'reader')),
    )
    let accepted = 0
    await besideReaders(url, async (use) => {
      for (const { id, text } of tokens) {
        use(text)
        for (let read = 0; read < 3; read += 1) await answerOnNewConnection(url, text)
        await store.tokens.revoke(id, Date.now())
        if (!(await answerOnNewConnection(url, text)).startsWith('HTTP/1.1 401 ')) accepted += 1
      }
    })
    expect(accepted).toBe(0)
  }, 60_000)
})
