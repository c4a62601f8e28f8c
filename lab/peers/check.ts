// scripts/bun lab/peers/check.ts: holds every contender to the contract, as far as it is
// measured, over HTTP and on a store of its own. Exit code 1 where one of them misses it.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'
import { type Contender, contenders } from './contenders.ts'

const token = 'plants_of_the_check'
const startTimeoutMs = 10_000
const answerTimeoutMs = 5000

interface Running {
  readonly child: ChildProcess
  readonly url: string
}

interface Answer {
  readonly status: number
  readonly body: string
}

/** Each takes a running contender whose store holds what the ones before it have left. */
const checks: Readonly<Record<string, (url: string) => Promise<void>>> = {
  create: async (url) => {
    expectAnswer(await create(url, { id: 7, name: 'Monstera deliciosa', tag: 'indoor' }), 200, {
      name: 'Monstera deliciosa',
      tag: 'indoor',
    })
    expectAnswer(await create(url, { id: -3, name: 'Bärlauch 🌿', more: true }), 200, {
      name: 'Bärlauch 🌿',
    })
    expectAnswer(await create(url, { id: Number.MAX_SAFE_INTEGER, name: '' }), 200, { name: '' })
  },
  duplicate: async (url) => {
    expectRefusal(await create(url, { id: 7, name: 'other' }), 409)
  },
  list: async (url) => {
    await create(url, { id: 10, name: 'ten' })
    const plants = [
      { name: 'Bärlauch 🌿' },
      { name: 'Monstera deliciosa', tag: 'indoor' },
      { name: 'ten' },
      { name: '' },
    ]
    expectAnswer(await send(url, 'GET', '/plants'), 200, plants)
    expectAnswer(await send(url, 'GET', '/plants?limit=2'), 200, plants.slice(0, 2))
    expectAnswer(await send(url, 'GET', '/plants?limit=0'), 200, [])
    expectAnswer(await send(url, 'GET', '/plants?limit=1000'), 200, plants)
  },
  delete: async (url) => {
    const deleted = await send(url, 'DELETE', '/plants/10')
    if (deleted.status !== 204 || deleted.body !== '')
      throw new Error(`DELETE /plants/10 answered ${show(deleted)}`)
    expectRefusal(await send(url, 'DELETE', '/plants/10'), 404)
    expectAnswer(await send(url, 'GET', '/plants?limit=3'), 200, [
      { name: 'Bärlauch 🌿' },
      { name: 'Monstera deliciosa', tag: 'indoor' },
      { name: '' },
    ])
  },
  'bad token': async (url) => {
    for (const headers of [{}, { authorization: 'Bearer unknown' }] as Record<string, string>[]) {
      expectRefusal(await send(url, 'POST', '/plants', '{"id":1,"name":"one"}', headers), 401)
      expectRefusal(await send(url, 'GET', '/plants', undefined, headers), 401)
      expectRefusal(await send(url, 'DELETE', '/plants/7', undefined, headers), 401)
    }
  },
  'bad input': async (url) => {
    const members = [
      '"id":"8"',
      '"id":1.5',
      '"id":null',
      '"id":true',
      '"id":9007199254740993',
      '"id":1e300',
    ]
    const bodies = [
      '',
      '{',
      '[]',
      'null',
      '"text"',
      '{"id":8}',
      '{"id":8,"name":8}',
      '{"id":8,"name":"eight","tag":null}',
    ]
    for (const body of [...bodies, ...members.map((member) => `{${member},"name":"eight"}`)])
      expectRefusal(await send(url, 'POST', '/plants', body), 400)
    for (const limit of ['', '-1', '1.5', 'ten', '2147483648'])
      expectRefusal(await send(url, 'GET', `/plants?limit=${limit}`), 400)
    for (const id of ['ten', '1.5', '9007199254740993'])
      expectRefusal(await send(url, 'DELETE', `/plants/${id}`), 400)
  },
}

/**
 * Kills the contender as soon as it has acknowledged a create, and starts it again on the same
 * store.
 */
async function killAfterCreate(
  contender: Contender,
  store: string,
  { child, url }: Running,
): Promise<Running> {
  expectAnswer(await create(url, { id: 11, name: 'eleven' }), 200, { name: 'eleven' })
  await end(child, 'SIGKILL')
  return await start(contender, store)
}

async function checkStop({ child }: Running): Promise<void> {
  const code = await end(child, 'SIGTERM')
  if (code !== 0) throw new Error(`SIGTERM: exit code ${code}`)
}

async function send(
  url: string,
  method: string,
  path: string,
  body?: string,
  headers: Record<string, string> = { authorization: `Bearer ${token}` },
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    body: body ?? null,
    signal: AbortSignal.timeout(answerTimeoutMs),
  })
  return { status: response.status, body: await response.text() }
}

function create(url: string, plant: object): Promise<Answer> {
  return send(url, 'POST', '/plants', JSON.stringify(plant))
}

function expectAnswer(answer: Answer, status: number, body: unknown): void {
  if (answer.status !== status || answer.body !== JSON.stringify(body))
    throw new Error(`expected ${status} ${JSON.stringify(body)}, got ${show(answer)}`)
}

function expectRefusal(answer: Answer, status: number): void {
  const failure = answer.body.startsWith('{') ? JSON.parse(answer.body) : undefined
  const formed =
    failure?.error === status && typeof failure.message === 'string' && failure.message !== ''
  if (answer.status !== status || !formed)
    throw new Error(`expected a refusal with ${status}, got ${show(answer)}`)
}

function show({ status, body }: Answer): string {
  return `${status} ${body.slice(0, 200)}`
}

async function start({ command, args, environment }: Contender, store: string): Promise<Running> {
  const child = spawn(command, args, {
    env: { ...process.env, ...environment, PORT: '0', STORE: store, TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    return { child, url: await address(child) }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

function address(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('it did not start'))
    const timer = setTimeout(fail, startTimeoutMs)
    child.on('error', reject)
    child.on('close', fail)
    let output = ''
    child.stdout?.on('data', (data) => {
      output += data
      const [, url] = /^listening on (http:\S+)\n/m.exec(output) ?? []
      if (url === undefined) return
      clearTimeout(timer)
      resolve(url)
    })
  })
}

/** Ends a process, if need be by force, and gives its exit code. */
function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode)
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), startTimeoutMs)
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve(code)
    })
    child.kill(signal)
  })
}

/** Gives what a contender misses, in one sentence for each check. */
async function misses(contender: Contender, store: string): Promise<string[]> {
  const found: string[] = []
  const attempt = async (name: string, check: () => Promise<void>): Promise<void> => {
    await check().catch((error: Error) => void found.push(`${name}: ${error.message}`))
  }
  let running = await start(contender, store)
  try {
    for (const [name, check] of Object.entries(checks))
      await attempt(name, () => check(running.url))
    await attempt('kill -9', async () => {
      running = await killAfterCreate(contender, store, running)
      expectRefusal(await create(running.url, { id: 11, name: 'other' }), 409)
    })
    await attempt('stop', () => checkStop(running))
  } finally {
    await end(running.child, 'SIGKILL')
  }
  return found
}

async function newStore(
  folder: string,
  postgres: PostgresServer,
  number: number,
  kind: Contender['store'],
): Promise<string> {
  return kind === 'sqlite'
    ? join(folder, `${number}.db`)
    : await postgres.createDatabase(`check_${number}`)
}

const folder = mkdtempSync(join(tmpdir(), 'plants-peers-'))
const postgres = await startPostgres()
let failed = 0
try {
  for (const [number, contender] of contenders.entries()) {
    const store = await newStore(folder, postgres, number, contender.store)
    const missed = await misses(contender, store).catch((error: Error) => [error.message])
    if (missed.length > 0) failed += 1
    console.log(
      `${missed.length === 0 ? 'ok  ' : 'FAIL'} ${contender.name}${missed.map((miss) => `\n     ${miss}`).join('')}`,
    )
  }
} finally {
  await postgres.dispose()
  rmSync(folder, { recursive: true })
}
process.exit(failed === 0 ? 0 : 1)
