// scripts/bun lab/scale-out/linearizability.ts [--minutes N] [--only TEXT]: runs the trials of
// test/support/trials.ts in turn, or those whose names contain the text, and counts the ids whose
// history is not linearizable. If Citus is installed, it runs trials on that too.
import { parseArgs } from 'node:util'
import { judgementOn } from '../../test/support/history.ts'
import type { PostgresServer } from '../../test/support/postgres.ts'
import {
  answersLost,
  onDatabase,
  statementsLate,
  type Trial,
  trials,
} from '../../test/support/trials.ts'
import { tableText } from '../report.ts'
import { type CitusCluster, citusPrograms, startCitus } from './citusCluster.ts'
import { countOf } from './services.ts'

const trialMs = 5000

const tell = (text: string): void => console.error(`${new Date().toISOString()} ${text}`)

/** Longer than the server may work on a statement, so that it is given up. */
const workerAwayMs = 4000

function citusTrials(programs: string): readonly Trial[] {
  type Cluster = CitusCluster & { readonly port: number }
  const start = async (ending: AsyncDisposableStack): Promise<Cluster> => {
    const servers: PostgresServer[] = []
    ending.defer(async () => {
      for (const server of servers) await server.dispose()
    })
    const cluster = await startCitus(programs, servers)
    return { ...cluster, port: cluster.coordinator.port }
  }
  const anyOf = ({ workers }: Cluster): PostgresServer =>
    workers[Math.floor(Math.random() * workers.length)] as PostgresServer
  return [
    onDatabase('Citus, answers lost', start, answersLost),
    onDatabase('Citus, statements late', start, statementsLate),
    onDatabase('Citus, worker killed', start, async ({ server }) => {
      const worker = anyOf(server)
      await worker.kill()
      await Bun.sleep(workerAwayMs)
      await worker.start()
    }),
    onDatabase('Citus, worker frozen', start, async ({ server }) => {
      const worker = anyOf(server)
      worker.pause()
      await Bun.sleep(workerAwayMs)
      worker.resume()
    }),
  ]
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      only: { type: 'string', default: '' },
    },
  })
  const programs = citusPrograms()
  const all = programs === undefined ? trials : [...trials, ...citusTrials(programs)]
  const chosen = all.filter(({ name }) => name.includes(values.only))
  if (chosen.length === 0) throw new Error(`no trial has "${values.only}" in its name`)
  let endMs = performance.now() + countOf('minutes', values.minutes) * 60_000
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => {
      tell('ending after this trial')
      endMs = 0
    })
  const sums = chosen.map(() => [0, 0, 0, 0, 0, 0])
  const offences: string[] = []
  try {
    for (let round = 1; performance.now() < endMs; round += 1)
      for (const [index, { name, run }] of chosen.entries()) {
        if (performance.now() > endMs) break
        const history = await run(trialMs)
        const found = judgementOn(history)
        const counts = [
          1,
          history.requests,
          history.unknown,
          found.judged,
          found.notJudged,
          found.offences.length,
        ]
        sums[index] = (sums[index] ?? []).map((sum, column) => sum + (counts[column] ?? 0))
        offences.push(...found.offences)
        tell(
          `round ${round}, ${name}: ${history.requests} requests, ${found.offences.length} of ${found.judged} ids not linearizable`,
        )
      }
  } finally {
    const columns = ['trial', 'runs', 'requests', 'outcome unknown', 'ids judged', 'not judged']
    const rows = chosen.map(({ name }, index) => [
      name,
      ...(sums[index] ?? []).map((sum) => sum.toLocaleString('en')),
    ])
    const title = 'Histories'
    console.log(tableText({ title, columns: [...columns, 'not linearizable'], rows }))
  }
  const [shortest] = offences.toSorted((one, other) => one.length - other.length)
  if (shortest === undefined) return 0
  console.log(`\n${shortest}`)
  return 1
}

try {
  process.exit(await main())
} catch (error) {
  console.error(`linearizability: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
