// Two service processes on one store, clients at both, and what goes wrong meanwhile. npm test runs
// each trial for seconds, lab/scale-out/linearizability.ts all of them for minutes.
import { rm } from 'node:fs/promises'
import { type History, record } from './history.ts'
import { freePort, host } from './operatingSystem.ts'
import { type PostgresServer, startPostgres, startStandby } from './postgres.ts'
import { type Running, run, start } from './process.ts'
import { temporaryFolder } from './service.ts'
import { startTcpProxy, type TcpProxy } from './tcpProxy.ts'

export interface Trial {
  readonly name: string
  /** Starts what it needs, lets clients work for about so long, and ends what it started. */
  readonly run: (lastsMs: number) => Promise<History>
}

/** Ends one of the processes by kill -9 and starts it again. */
type KillProcess = () => Promise<void>

/** The proxy stands between the processes and the server. */
export interface Database<Server> {
  readonly killProcess: KillProcess
  readonly server: Server
  readonly proxy: TcpProxy
}

/** What goes wrong, once. It is done again and again. */
type Strike<Server> = (database: Database<Server>) => Promise<void>

const pauseMaxMs = 300
const pause = (): Promise<void> => Bun.sleep(pauseMaxMs * Math.random())

export const answersLost: Strike<unknown> = async ({ proxy }) => proxy.loseReplies(0.01)

/** What was sent before the break arrives while it is tried again, or after that. */
export const statementsLate: Strike<unknown> = async ({ proxy }) => {
  proxy.freezePresent()
  await pause()
  proxy.cutClients()
  await pause()
  proxy.thaw()
}

export const trials: readonly Trial[] = [
  onFile('calm', pause),
  onFile('processes killed', (killProcess) => killProcess()),
  onPostgres('calm', pause),
  onPostgres('processes killed', ({ killProcess }) => killProcess()),
  onPostgres('backends killed', async ({ server }) => {
    await server.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'plants' and random() < 0.5",
    )
  }),
  onPostgres('answers lost', answersLost),
  onPostgres('statements late', statementsLate),
  // Longer than any operation waits, so that there are answers of both kinds of 503.
  onPostgres('silent for long', async ({ proxy }) => {
    proxy.freeze()
    await Bun.sleep(8000)
    proxy.thaw()
  }),
  { name: 'PostgreSQL, failover', run: failover },
]

function onFile(event: string, strike: (killProcess: KillProcess) => Promise<void>): Trial {
  return {
    name: `embedded store, ${event}`,
    run: async (lastsMs) => {
      await using ending = new AsyncDisposableStack()
      return await recordOn('sqlite:plants.db', ending, (killProcess) =>
        repeat(lastsMs, () => strike(killProcess)),
      )
    },
  }
}

function onPostgres(event: string, strike: Strike<PostgresServer>): Trial {
  const startServer = async (ending: AsyncDisposableStack): Promise<PostgresServer> => {
    const server = await startPostgres()
    ending.defer(() => server.dispose())
    return server
  }
  return onDatabase(`PostgreSQL, ${event}`, startServer, strike)
}

/** A trial on what listens on the port. */
export function onDatabase<Server extends { readonly port: number }>(
  name: string,
  startServer: (ending: AsyncDisposableStack) => Promise<Server>,
  strike: Strike<Server>,
): Trial {
  return {
    name,
    run: async (lastsMs) => {
      await using ending = new AsyncDisposableStack()
      const server = await startServer(ending)
      const proxy = await startTcpProxy(server.port)
      ending.defer(() => proxy.close())
      const store = `postgres://plants:secret@${host}:${proxy.port}/plants`
      return await recordOn(store, ending, (killProcess) =>
        repeat(lastsMs, () => strike({ killProcess, server, proxy })),
      )
    },
  }
}

async function failover(lastsMs: number): Promise<History> {
  await using ending = new AsyncDisposableStack()
  const primary = await startPostgres()
  ending.defer(() => primary.dispose())
  const standby = await startStandby(primary)
  ending.defer(() => standby.dispose())
  await standby.makeSynchronous()
  const store = `postgres://plants:secret@${host}:${standby.port},${host}:${primary.port}/plants`
  return await recordOn(store, ending, async () => {
    await Bun.sleep((lastsMs / 2) * (0.5 + Math.random()))
    await primary.kill()
    await standby.promote()
    await Bun.sleep(lastsMs / 2)
  })
}

async function repeat(lastsMs: number, strike: () => Promise<void>): Promise<void> {
  const endMs = performance.now() + lastsMs
  while (performance.now() < endMs) {
    await pause()
    await strike()
  }
}

/** Clients of two accounts at two processes on a store, for as long as `meanwhile` takes. */
async function recordOn(
  store: string,
  ending: AsyncDisposableStack,
  meanwhile: (killProcess: KillProcess) => Promise<void>,
): Promise<History> {
  const folder = temporaryFolder()
  ending.defer(() => rm(folder, { recursive: true }))
  const command = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await run([...args, '--store', store], folder)
    if (code !== 0) throw new Error(`plants ${args.join(' ')}: ${err}`)
    return out.trim()
  }
  await command('migrate')

  const processes = new Map<number, Running>()
  ending.defer(async () => {
    for (const { process } of processes.values()) process.kill('SIGKILL')
    for (const { finished } of processes.values()) await finished
  })
  const serveOn = async (port: number): Promise<string> => {
    const serving = start(['serve', '--port', String(port), '--store', store], folder)
    processes.set(port, serving)
    return await serving.url
  }
  const ports = [await freePort(), await freePort()]
  // One after the other, because the first makes an embedded store.
  const urls: string[] = []
  for (const port of ports) urls.push(await serveOn(port))
  const tokens = [
    await command('token', 'issue', '--account', 'one'),
    await command('token', 'issue', '--account', 'other'),
  ]
  const killProcess = async (): Promise<void> => {
    const port = ports[Math.floor(Math.random() * ports.length)] ?? 0
    processes.get(port)?.process.kill('SIGKILL')
    await processes.get(port)?.finished
    await serveOn(port)
  }
  const doors = urls.flatMap((url) => tokens.map((token) => ({ url, token })))
  return await record(doors, meanwhile(killProcess))
}
