// What the measurements of this folder have in common: services on one database, load on them, and a
// verdict.
import { Load } from '../../test/support/load.ts'
import { type Running, run } from '../../test/support/process.ts'

const pauseMs = 3
const wrongShownMax = 20

export const tell = (text: string): void => console.error(`${new Date().toISOString()} ${text}`)

/** Makes the tables of a database. */
export async function migrate(store: string, folder: string): Promise<void> {
  await succeeding(['migrate', '--store', store], folder)
}

export async function issueToken(store: string, account: string, folder: string): Promise<string> {
  const args = ['token', 'issue', '--account', account, '--store', store]
  return (await succeeding(args, folder)).trim()
}

async function succeeding(args: readonly string[], folder: string): Promise<string> {
  const { code, out, err } = await run(args, folder)
  if (code !== 0) throw new Error(`plants ${args.slice(0, 2).join(' ')} failed: ${err}`)
  return out
}

export function startLoad(urls: readonly string[], token: string, clients = 28): Load {
  const load = new Load(urls, token)
  load.start(clients, pauseMs)
  return load
}

/** Ends the loads, prints what they saw, and gives whether nothing was wrong. */
export async function verdict(loads: readonly Load[]): Promise<boolean> {
  await Promise.all(loads.map((load) => load.stop()))
  const all = await Promise.all(loads.map((load) => load.findings()))
  const wrong = all.flatMap((findings) => findings.wrong)
  const counts = [
    sum(all.map(({ lost }) => lost.length)),
    sum(all.map(({ risen }) => risen.length)),
    sum(all.map(({ invented }) => invented.length)),
    sum(all.map(({ twice }) => twice)),
    wrong.length,
  ]
  const [lost, risen, invented, twice] = counts
  console.log(`
answers: ${Object.entries(answersOf(loads))
    .map(([answer, count]) => `${answer}: ${count}`)
    .join(', ')}
acknowledged creates whose plants are not there: ${lost}
plants that are there, although they were deleted or nothing was done: ${risen}
plants that nobody created: ${invented}
plants that a list shows more than once: ${twice}
wrong answers: ${wrong.length}${wrong
    .slice(0, wrongShownMax)
    .map((what) => `\n  ${what}`)
    .join('')}`)
  return sum(counts) === 0
}

/** As `verdict`, and no service may have ended by itself. Gives the exit code. */
export async function conclude(
  services: readonly Running[],
  loads: readonly Load[],
): Promise<number> {
  const nothingWrong = await verdict(loads)
  const ended = services.filter(({ process }) => process.exitCode ?? process.signalCode)
  console.log(`services that ended by themselves: ${ended.length}`)
  if (nothingWrong && ended.length === 0) return 0
  for (const { err } of services)
    console.error(
      err()
        .split('\n')
        .filter((line) => !line.includes('"level":"info"'))
        .slice(-20),
    )
  return 1
}

/** How often each operation was answered how, over all loads. */
function answersOf(loads: readonly Load[]): Record<string, number> {
  const answers: Record<string, number> = {}
  for (const { statuses } of loads)
    for (const [answer, count] of Object.entries(statuses))
      answers[answer] = (answers[answer] ?? 0) + count
  return answers
}

const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0)

/** Rejects when the user interrupts the run. */
export function interrupted(): Promise<never> {
  return new Promise((_, reject) => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(name, () => reject(new Error(`ended by ${name}`)))
  })
}

/** A flag that counts: a whole number from 0 to 100. */
export function countOf(flag: string, text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count >= 0 && count <= 100) return count
  throw new Error(`--${flag} takes a number from 0 to 100`)
}
