// scripts/bun lab/scale-out/failover.ts [--kills N] [--freezes N]: two services on a Patroni
// cluster, under load, through a switchover, dead leaders and frozen ones; measures the gaps and
// counts what was lost.
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { until } from '../../test/support/clock.ts'
import type { Load } from '../../test/support/load.ts'
import { host } from '../../test/support/operatingSystem.ts'
import { type Running, start } from '../../test/support/process.ts'
import { tableText } from '../report.ts'
import { missingPackages, PatroniCluster, type PatroniNode, versions } from './patroniCluster.ts'
import { conclude, countOf, interrupted, issueToken, migrate, startLoad, tell } from './services.ts'

const password = 'secret'
const quietMs = 5000
const takeoverMs = 90_000

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '2' },
      freezes: { type: 'string', default: '1' },
    },
  })
  const kills = countOf('kills', values.kills)
  const freezes = countOf('freezes', values.freezes)
  const missing = missingPackages()
  if (missing !== undefined) {
    console.error(missing)
    return 2
  }
  const folder = mkdtempSync(join(tmpdir(), 'plants-failover-'))
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
    rmSync(folder, { recursive: true, force: true })
  }
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
  const leader = await leaderOf(cluster)
  await cluster.sql(leader, `create role plants login password '${password}'`)
  await cluster.sql(
    leader,
    `create database plants owner plants encoding 'UTF8' template template0`,
  )
  await cluster.sql(leader, 'create table probes (at timestamptz not null)')
  const hosts = cluster.nodes.map(({ port }) => `${host}:${port}`).join(',')
  const store = `postgres://plants:${password}@${hosts}/plants`
  await migrate(store, folder)
  const token = await issueToken(store, 'load', folder)
  for (let number = 1; number <= 2; number += 1)
    services.push(start(['serve', '--port', '0', '--store', store], folder))
  const load = startLoad(await Promise.all(services.map(({ url }) => url)), token)

  await Bun.sleep(quietMs)
  const rows = [['nothing', '', '', load.gap.lengthMs.toFixed(0), load.slowestMs.toFixed(0)]]
  rows.push(await takeover('switchover', cluster, load, () => cluster.switchover()))
  for (let number = 1; number <= kills; number += 1)
    rows.push(
      await takeover(`leader killed (${number})`, cluster, load, (node) => cluster.kill(node)),
    )
  for (let number = 1; number <= freezes; number += 1)
    rows.push(
      await takeover(`leader frozen (${number})`, cluster, load, (node) => cluster.freeze(node)),
    )
  const columns = ['event', 'database gap ms', 'service lag ms', 'write gap ms', 'slowest ms']
  console.log(tableText({ title: 'What writers saw', columns, rows }))
  return await conclude(services, [load])
}

/**
 * Does something to the leader, waits for its successor and for writes, and makes the cluster whole
 * again. Gives a row of the table: the time until another node took a write, the time from then
 * until the service acknowledged one, and what clients saw.
 */
async function takeover(
  name: string,
  cluster: PatroniCluster,
  load: Load,
  strike: (leader: PatroniNode) => void | Promise<void>,
): Promise<string[]> {
  await cluster.settled()
  const leader = await leaderOf(cluster)
  tell(`${name}: ${leader.name}`)
  load.measureAgain()
  const startedMs = performance.now()
  const struck = strike(leader)
  const takenMs = await firstWriteMs(
    cluster,
    cluster.nodes.filter((node) => node !== leader),
  )
  await struck
  await Bun.sleep(quietMs)
  // Back while the load goes on: a former leader must not be mistaken for the present one.
  tell(`${leader.name} comes back`)
  cluster.thaw(leader)
  if (!cluster.runs(leader)) cluster.startNode(leader)
  await cluster.settled()
  await Bun.sleep(quietMs)
  const { lengthMs, endMs } = load.gap
  const lagMs = Math.max(0, endMs - takenMs)
  return [
    name,
    ...[takenMs - startedMs, lagMs, lengthMs, load.slowestMs].map((ms) => ms.toFixed(0)),
  ]
}

async function leaderOf(cluster: PatroniCluster): Promise<PatroniNode> {
  let leader: PatroniNode | undefined
  await until(
    'the cluster has a leader',
    async () => {
      leader = await cluster.leader()
      return leader !== undefined
    },
    takeoverMs,
  )
  return leader as PatroniNode
}

/** When one of the nodes first took a write (performance.now()). */
async function firstWriteMs(
  cluster: PatroniCluster,
  nodes: readonly PatroniNode[],
): Promise<number> {
  let takenMs: number | undefined
  const probe = async (node: PatroniNode): Promise<boolean> => {
    if (takenMs !== undefined) return true
    try {
      await cluster.sql(node, 'insert into probes values (now())')
    } catch {
      return false
    }
    takenMs ??= performance.now()
    return true
  }
  await Promise.any(
    nodes.map((node) => until('a node takes writes', () => probe(node), takeoverMs)),
  )
  return takenMs ?? Number.NaN
}

try {
  process.exit(await main())
} catch (error) {
  console.error(`failover: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
