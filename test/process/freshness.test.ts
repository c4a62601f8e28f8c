// A request is answered with what was acknowledged before it was sent, by whichever process, on new connections
// too: beside others that read the same at that moment, which is when answers are shared.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { issueToken } from '../../src/domain/issueToken.ts'
import type { Store } from '../../src/domain/store.ts'
import { scopes } from '../../src/domain/token.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { type Running, serve } from '../support/process.ts'
import { call, temporaryFolder } from '../support/service.ts'

const folder = temporaryFolder()
const rounds = 400
const readers = 64
let servers: readonly Running[] = []
let urls: readonly string[] = []
/** The door through which the command line reaches the store. */
let store: Store

beforeAll(async () => {
  servers = [serve(folder), serve(folder)]
  urls = await Promise.all(servers.map(({ url }) => url))
  store = await openSqliteStore(`${folder}/plants.db`, { create: false })
})

afterAll(async () => {
  await store.close()
  for (const { process } of servers) process.kill('SIGTERM')
  for (const { finished } of servers) await finished
  rmSync(folder, { recursive: true })
})

async function newToken(account: string): Promise<{ readonly id: string; readonly text: string }> {
  const surroundings = { nowMs: Date.now, randomBytes }
  const { token, plain } = await issueToken(store, { account, label: '', scopes, lifetimeMs: null }, surroundings)
  return { id: token.id, text: plain.reveal() }
}

/** Runs `work` beside a process that lists without a pause through the first server, with the token last given to `use`. */
async function besideReaders(work: (use: (token: string) => void) => Promise<void>): Promise<void> {
  const script = join(import.meta.dir, '../support/readers.ts')
  const child = spawn(process.execPath, [script, urls[0] ?? '', String(readers)], { stdio: ['pipe', 'ignore', 'inherit'] })
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
    socket.write(`GET /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  })
}

describe('beside many readers of the same list', () => {
  test('a plant that another process acknowledged is in the next list, and one that it deleted is not', async () => {
    const [here = '', there = ''] = urls
    const { text: token } = await newToken('writer')
    let missing = 0
    let risen = 0
    await besideReaders(async (use) => {
      use(token)
      for (let id = 0; id < rounds; id += 1) {
        const body = `{"id":${id},"name":"plant-${id}."}`
        expect((await call(there, 'POST', '/plants', { token, body })).status).toBe(200)
        if (!(await answerOnNewConnection(here, token)).includes(`plant-${id}.`)) missing += 1
        expect((await call(there, 'DELETE', `/plants/${id}`, { token })).status).toBe(204)
        if ((await answerOnNewConnection(here, token)).includes(`plant-${id}.`)) risen += 1
      }
    })
    expect({ missing, risen }).toEqual({ missing: 0, risen: 0 })
  }, 60_000)

  test('a token that was revoked is refused from the next request on', async () => {
    const tokens = await Promise.all(Array.from({ length: rounds }, () => newToken('reader')))
    let accepted = 0
    await besideReaders(async (use) => {
      for (const { id, text } of tokens) {
        use(text)
        for (let read = 0; read < 3; read += 1) await answerOnNewConnection(urls[0] ?? '', text)
        await store.revokeToken(id, Date.now())
        if (!(await answerOnNewConnection(urls[0] ?? '', text)).startsWith('HTTP/1.1 401 ')) accepted += 1
      }
    })
    expect(accepted).toBe(0)
  }, 60_000)
})
