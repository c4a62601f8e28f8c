// scripts/bun lab/scale-out/patroni.ts [--kills N] [--freezes N] [--keep]: two services on a Patroni
// cluster, under load, through a switchover, dead leaders and frozen ones; measures the gaps and
// counts what was lost.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Running, run, start } from '../../test/support/process.ts'
import { Load, type Losses, type Measures } from './load.ts'
import { missingPackages, PatroniCluster, type PatroniNode, versions } from './patroniCluster.ts'
import { countFlag, host, interrupted, until } from './processes.ts'

interface Event {
  readonly name: string
  readonly measures: Measures
  /** From the event until another node took a write; undefined where none had to. */
  readonly databaseGapMs?: number
  /** From then until the service acknowledged one. */
  readonly serviceLagMs?: number
}

const password = 'secret'
const database = 'plants'
const loadOptions = { creators: 16, deleters: 6, readers: 6, pauseMs: 4, timeoutMs: 20_000 }
const quietMs = 5000
const takeoverMs = 90_000
/** All that may be answered; the load itself judges each 404 and 409. */
const statusesAllowed = new Set([200, 204, 404, 409, 503])

const tell = (text: string): void => console.error(text)

async function main(args: readonly string[]): Promise<number> {
  const kills = countFlag(args, '--kills', 2, 20)
  const freezes = countFlag(args, '--freezes', 1, 20)
  const install = missingPackages()
  if (install !== undefined) {
    tell(`This needs Debian's packages: ${install}`)
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'plants-patroni-'))
  await chmod(folder, 0o755)
  const cluster = await PatroniCluster.create(folder)
  const services: Running[] = []
  try {
    return await Promise.race([measure(cluster, services, folder, kills, freezes), interrupted()])
  } finally {
    tell('stopping')
    // The database first: what is still being started fails then.
    await cluster.stop().catch((error) => tell(String(error)))
    for (const { process } of services) process.kill('SIGKILL')
    if (args.includes('--keep')) keepLogs(folder, services)
    else rmSync(folder, { recursive: true, force: true })
  }
}

function keepLogs(folder: string, services: readonly Running[]): void {
  services.forEach(
    ({ err }, index) => void writeFileSync(join(folder, `service${index + 1}.log`), err()),
  )
  tell(`the logs are in ${folder}`)
}

async function measure(
  cluster: PatroniCluster,
  services: Running[],
  folder: string,
  kills: number,
  freezes: number,
): Promise<number> {
  tell(`starting ${versions()}`)
  await cluster.start()
  const { urls, token } = await startServices(cluster, services, folder)
  const load = new Load({ ...loadOptions, urls, token })
  load.start()
  const events: Event[] = [await quiet(load)]
  events.push(await takeover('switchover', cluster, load, () => cluster.switchover()))
  for (let number = 1; number <= kills; number += 1)
    events.push(
      await takeover(`leader killed (${number})`, cluster, load, (leader) => cluster.kill(leader)),
    )
  for (let number = 1; number <= freezes; number += 1)
    events.push(
      await takeover(`leader frozen (${number})`, cluster, load, async (leader) =>
        cluster.freeze(leader),
      ),
    )
  await load.stop()
  return await report(cluster, load, events, services)
}

async function startServices(
  cluster: PatroniCluster,
  services: Running[],
  folder: string,
): Promise<{ urls: readonly string[]; token: string }> {
  const leader = await leaderOf(cluster)
  await cluster.sql(leader, 'postgres', `create role plants login password '${password}'`)
  await cluster.sql(
    leader,
    'postgres',
    `create database ${database} owner plants encoding 'UTF8' template template0`,
  )
  await cluster.sql(leader, 'postgres', 'create table probes (at timestamptz not null)')
  const hosts = cluster.nodes.map(({ port }) => `${host}:${port}`).join(',')
  const store = ['--store', `postgres://plants:${password}@${hosts}/${database}`]
  const migrated = await run(['migrate', ...store], folder)
  if (migrated.code !== 0) throw new Error(`plants migrate failed: ${migrated.err}`)
  const issued = await run(['token', 'issue', '--account', 'load', ...store], folder)
  if (issued.code !== 0) throw new Error(`plants token issue failed: ${issued.err}`)
  for (let number = 1; number <= 2; number += 1)
    services.push(start(['serve', '--port', '0', ...store], folder))
  return { urls: await Promise.all(services.map(({ url }) => url)), token: issued.out.trim() }
}

async function quiet(load: Load): Promise<Event> {
  load.begin()
  await Bun.sleep(quietMs)
  return { name: 'nothing', measures: load.end() }
}

/**
 * Does something to the leader, waits for its successor and for writes, and makes the cluster whole
 * again.
 */
async function takeover(
  name: string,
  cluster: PatroniCluster,
  load: Load,
  strike: (leader: PatroniNode) => Promise<void>,
): Promise<Event> {
  await cluster.settled()
  const leader = await leaderOf(cluster)
  tell(`${new Date().toISOString()} ${name}: ${leader.name}`)
  load.begin()
  const startedMs = performance.now()
  const struck = strike(leader)
  const others = cluster.nodes.filter((node) => node !== leader)
  const takenMs = await firstWriteMs(cluster, others)
  await struck
  await Bun.sleep(quietMs)
  // Back while the load goes on: a former leader must not be mistaken for the present one.
  tell(`${new Date().toISOString()} ${leader.name} comes back`)
  cluster.thaw(leader)
  if (name.includes('killed')) cluster.startNode(leader)
  await cluster.settled()
  await Bun.sleep(quietMs)
  const measures = load.end()
  const serviceLagMs = Math.max(0, measures.writeGapEndMs - takenMs)
  return { name, measures, databaseGapMs: takenMs - startedMs, serviceLagMs }
}

async function leaderOf(cluster: PatroniCluster): Promise<PatroniNode> {
  let leader: PatroniNode | undefined
  await until('the cluster has a leader', takeoverMs, async () => {
    leader = await cluster.leader()
    return leader !== undefined
  })
  return leader as PatroniNode
}

/** When one of the nodes first took a write. */
async function firstWriteMs(
  cluster: PatroniCluster,
  nodes: readonly PatroniNode[],
): Promise<number> {
  let takenMs: number | undefined
  const attempts = nodes.map((node) =>
    until('a node takes writes', takeoverMs, async () => {
      if (takenMs !== undefined) return true
      const taken = await cluster.sql(node, 'postgres', 'insert into probes values (now())').then(
        () => true,
        () => false,
      )
      if (taken) takenMs ??= performance.now()
      return taken
    }),
  )
  await Promise.any(attempts)
  return takenMs ?? Number.NaN
}

async function report(
  cluster: PatroniCluster,
  load: Load,
  events: readonly Event[],
  services: readonly Running[],
): Promise<number> {
  const rows = await cluster.sql(
    await leaderOf(cluster),
    database,
    "select id from plants where account = 'load'",
  )
  const losses = load.losses(new Set(rows.map(({ id }) => BigInt(String(id)))))
  const answers = new Set(events.flatMap(({ measures }) => [...measures.answers.keys()]))
  const wrong = [...answers].filter((status) => !statusesAllowed.has(status))
  const ended = services.filter(
    ({ process }) => process.exitCode !== null || process.signalCode !== null,
  )
  console.log(table(events))
  console.log(summary(load, losses, wrong, ended.length))
  const lost = losses.creates + losses.deletes + losses.denied
  if (lost + load.contradictionCount + wrong.length + ended.length === 0) return 0
  for (const { err } of services) tell(failuresIn(err()))
  return 1
}

function table(events: readonly Event[]): string {
  const milliseconds = (lengthMs: number | undefined): string =>
    lengthMs === undefined ? '-' : lengthMs.toFixed(0)
  const heads = [
    'event',
    'database gap ms',
    'service lag ms',
    'write gap ms',
    'slowest ms',
    'answers',
  ]
  const lines = events.map(({ name, measures, databaseGapMs, serviceLagMs }) => [
    name,
    milliseconds(databaseGapMs),
    milliseconds(serviceLagMs),
    milliseconds(measures.writeGapMs),
    milliseconds(measures.slowestMs),
    [...measures.answers]
      .sort(([one], [other]) => one - other)
      .map(([status, count]) => `${status === 0 ? 'none' : status}: ${count}`)
      .join(', '),
  ])
  const last = heads.length - 1
  return [heads, ...lines]
    .map((cells) =>
      cells
        .map((cell, index) =>
          index === 0 ? cell.padEnd(20) : index === last ? `  ${cell}` : cell.padStart(16),
        )
        .join(''),
    )
    .join('\n')
}

function summary(load: Load, losses: Losses, wrong: readonly number[], ended: number): string {
  const { creates, deletes, unknown } = load.acknowledged()
  return `
acknowledged creates ${creates}, of which absent: ${losses.creates}
acknowledged deletes ${deletes}, of which present: ${losses.deletes}
answered "nothing was done" and present: ${losses.denied}
in doubt, not counted: ${unknown}
statuses that must not occur: ${wrong.length === 0 ? 'none' : wrong.map((status) => (status === 0 ? 'no answer' : status)).join(', ')}
contradictions: ${load.contradictionCount}${load.contradictions.map((what) => `\n  ${what}`).join('')}
services that ended by themselves: ${ended}`
}

/** The last of a log that is no line of a request. */
function failuresIn(log: string): string {
  return log
    .split('\n')
    .filter((line) => !line.includes('"level":"info"'))
    .slice(-20)
    .join('\n')
}

try {
  process.exit(await main(process.argv.slice(2)))
} catch (error) {
  tell(`patroni: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
