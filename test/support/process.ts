// The real command line as a black box: bin/plants, in a folder of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { openStore } from '../../src/stores/open.ts'
import { until } from './clock.ts'
import { storeOptions } from './stores.ts'

export const launcher = join(import.meta.dir, '../../bin/plants')

export interface Finished {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs a command to its end. */
export async function run(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const child = start(args, folder, environment)
  return await child.finished
}

export interface Running {
  readonly process: ChildProcess
  readonly finished: Promise<Finished>
  readonly out: () => string
  readonly err: () => string
  /** Where it listens. Rejects if it ends before it says so. */
  readonly url: Promise<string>
}

export function start(
  args: readonly string[],
  folder: string,
  environment: Readonly<Record<string, string>> = {},
  program = launcher,
): Running {
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  const url = Promise.withResolvers<string>()
  child.stdout.on('data', (data) => {
    out += data
    const listening = /^plants: listening on (http:\S+)$/m.exec(out)
    if (listening?.[1] !== undefined) url.resolve(listening[1])
  })
  child.stderr.on('data', (data) => {
    err += data
  })
  const finished = new Promise<Finished>((resolve) => {
    child.on('close', (code) => {
      url.reject(new Error(`ended with ${code}: ${err}`))
      resolve({ code, out, err })
    })
  })
  url.promise.catch(() => {})
  return { process: child, finished, out: () => out, err: () => err, url: url.promise }
}

/** Starts a server on a free port. */
export function serve(folder: string, ...more: readonly string[]): Running {
  return start(['serve', '--port', '0', '--store', 'sqlite:plants.db', ...more], folder)
}

/** A port that nobody listens on, for a test that connects before the service says where. */
export async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return String(port)
}

/** Resolves once connections to a port are accepted. */
export function accepts(port: string): Promise<void> {
  return until('it listens', () => {
    const socket = connect(Number(port), '127.0.0.1')
    const accepted = once(socket, 'connect').then(
      () => true,
      () => false,
    )
    return accepted.finally(() => socket.destroy())
  })
}

/** Makes an empty store, plants.db, as a server does. */
export async function makeStore(folder: string): Promise<void> {
  const location = { scheme: 'sqlite', path: join(folder, 'plants.db') } as const
  await (await openStore(location, { ...storeOptions, use: 'create' })).close()
}

/** Issues a token at the command line, in a store that is made first if there is none. */
export async function tokenFor(
  account: string,
  folder: string,
  ...more: readonly string[]
): Promise<string> {
  if (!existsSync(join(folder, 'plants.db'))) await makeStore(folder)
  const { out } = await run(
    ['token', 'issue', '--account', account, '--store', 'sqlite:plants.db', ...more],
    folder,
  )
  return out.trim()
}
