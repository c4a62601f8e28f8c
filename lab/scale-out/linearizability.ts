// scripts/bun lab/scale-out/linearizability.ts [--minutes N]: runs the trials of
// test/support/trials.ts in turn, and counts the ids whose history is not linearizable.
import { parseArgs } from 'node:util'
import { judgementOn } from '../../test/support/history.ts'
import { trials } from '../../test/support/trials.ts'
import { tableText } from '../report.ts'
import { countOf } from './services.ts'

const trialMs = 5000

const tell = (text: string): void => console.error(`${new Date().toISOString()} ${text}`)

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
  let endMs = performance.now() + countOf('minutes', values.minutes) * 60_000
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(name, () => {
      tell('ending after this trial')
      endMs = 0
    })
  const sums = trials.map(() => [0, 0, 0, 0, 0, 0])
  const offences: string[] = []
  try {
    for (let round = 1; performance.now() < endMs; round += 1)
      for (const [index, { name, run }] of trials.entries()) {
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
    const rows = trials.map(({ name }, index) => [
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
