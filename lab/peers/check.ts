// scripts/bun lab/peers/check.ts: holds every peer to the contract, as far as it is measured, over
// HTTP and on a store of its own. Exit code 1 if one of them misses it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../../test/support/postgres.ts'
import { type Answer, type CallOptions, call } from '../../test/support/service.ts'
import { type Contender, peers, peerToken } from '../servers.ts'

/** Asks a peer that runs, and throws if its answer is not as it must be. */
class Asked {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  /** `expected` is the body, or undefined if there must be none. */
  async gives(status: number, expected: unknown, method: string, target: string, body?: unknown) {
    const answer = await this.#ask(method, target, { body: textOf(body), token: peerToken })
    const text = expected === undefined ? '' : JSON.stringify(expected)
    if (answer.status !== status || answer.text !== text)
      throw new Error(`expected ${status} ${text}, got ${answer.status} ${answer.text}`)
  }

  /** A refusal in the form of the contract. */
  async refuses(
    status: number,
    method: string,
    target: string,
    body?: unknown,
    token: string | null = peerToken,
  ) {
    const answer = await this.#ask(method, target, {
      body: textOf(body),
      token: token ?? undefined,
    })
    const failure = answer.text.startsWith('{') ? JSON.parse(answer.text) : undefined
    if (answer.status !== status || failure?.error !== status || !failure.message)
      throw new Error(`expected a refusal with ${status}, got ${answer.status} ${answer.text}`)
  }

  #ask(method: string, target: string, options: CallOptions): Promise<Answer> {
    return call(this.#url, method, target, options)
  }
}

function textOf(body: unknown): string | undefined {
  return typeof body === 'object' ? JSON.stringify(body) : (body as string | undefined)
}

/** Each takes a peer whose store holds what the ones before it have left. */
const checks: Readonly<Record<string, (peer: Asked) => Promise<void>>> = {
  create: async (peer) => {
    const monstera = { name: 'Monstera deliciosa', tag: 'indoor' }
    await peer.gives(200, monstera, 'POST', '/plants', { id: 7, ...monstera })
    const wild = { name: 'Bärlauch 🌿' }
    await peer.gives(200, wild, 'POST', '/plants', { id: -3, ...wild, more: true })
    const last = { id: Number.MAX_SAFE_INTEGER, name: '' }
    await peer.gives(200, { name: '' }, 'POST', '/plants', last)
  },
  duplicate: (peer) => peer.refuses(409, 'POST', '/plants', { id: 7, name: 'other' }),
  list: async (peer) => {
    await peer.gives(200, { name: 'ten' }, 'POST', '/plants', { id: 10, name: 'ten' })
    const plants = [
      { name: 'Bärlauch 🌿' },
      { name: 'Monstera deliciosa', tag: 'indoor' },
      { name: 'ten' },
      { name: '' },
    ]
    await peer.gives(200, plants, 'GET', '/plants')
    await peer.gives(200, plants.slice(0, 2), 'GET', '/plants?limit=2')
    await peer.gives(200, [], 'GET', '/plants?limit=0')
    await peer.gives(200, plants, 'GET', '/plants?limit=1000')
  },
  delete: async (peer) => {
    await peer.gives(204, undefined, 'DELETE', '/plants/10')
    await peer.refuses(404, 'DELETE', '/plants/10')
    const left = [{ name: 'Bärlauch 🌿' }, { name: 'Monstera deliciosa', tag: 'indoor' }]
    await peer.gives(200, left, 'GET', '/plants?limit=2')
  },
  'bad token': async (peer) => {
    for (const token of [null, 'unknown']) {
      await peer.refuses(401, 'POST', '/plants', { id: 1, name: 'one' }, token)
      await peer.refuses(401, 'GET', '/plants', undefined, token)
      await peer.refuses(401, 'DELETE', '/plants/7', undefined, token)
    }
  },
  'bad input': async (peer) => {
    const ids = ['"8"', '1.5', 'null', 'true', '9007199254740993', '1e300']
    const bodies = ['', '{', '[]', 'null', '"text"', '{"id":8}', '{"id":8,"name":8}']
    const tagged = '{"id":8,"name":"eight","tag":null}'
    for (const body of [...bodies, tagged, ...ids.map((id) => `{"id":${id},"name":"eight"}`)])
      await peer.refuses(400, 'POST', '/plants', body)
    for (const limit of ['', '-1', '1.5', 'ten', '2147483648'])
      await peer.refuses(400, 'GET', `/plants?limit=${limit}`)
    for (const id of ['ten', '1.5', '9007199254740993'])
      await peer.refuses(400, 'DELETE', `/plants/${id}`)
  },
}

/** What a peer misses, in one sentence for each check. */
async function misses(contender: Contender, store: string): Promise<string[]> {
  const found: string[] = []
  const attempt = async (name: string, check: () => Promise<void>): Promise<void> => {
    await check().catch((error: Error) => void found.push(`${name}: ${error.message}`))
  }
  let server = await contender.start(store)
  for (const [name, check] of Object.entries(checks))
    await attempt(name, () => check(new Asked(server.url)))
  await attempt('kill -9', async () => {
    const eleven = { id: 11, name: 'eleven' }
    await new Asked(server.url).gives(200, { name: 'eleven' }, 'POST', '/plants', eleven)
    await server.stop('SIGKILL')
    server = await contender.start(store)
    await new Asked(server.url).refuses(409, 'POST', '/plants', eleven)
  })
  const timer = setTimeout(() => void server.stop('SIGKILL'), 10_000)
  const code = await server.stop()
  clearTimeout(timer)
  return code === 0 ? found : [...found, `stop: exit code ${code} after SIGTERM`]
}

const folder = mkdtempSync(join(tmpdir(), 'plants-peers-'))
const postgres = await startPostgres()
let failed = 0
try {
  if (peers.length === 0) throw new Error('npm ci --prefix lab installs the peers')
  for (const [number, peer] of peers.entries()) {
    const isFile = peer.store === 'sqlite'
    const store = isFile ? join(folder, `${number}.db`) : postgres.createDatabase(`peer_${number}`)
    const missed = await misses(peer, await store).catch((error: Error) => [error.message])
    if (missed.length > 0) failed += 1
    const lines = missed.map((miss) => `\n     ${miss}`)
    console.log(`${missed.length === 0 ? 'ok  ' : 'FAIL'} ${peer.name}${lines.join('')}`)
  }
} finally {
  await postgres.dispose()
  rmSync(folder, { recursive: true })
}
process.exit(failed === 0 ? 0 : 1)
