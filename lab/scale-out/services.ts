// What a failover and a rolling restart have in common: services on one database, load on them, and
// a verdict.
import { Load } from '../../test/support/load.ts'
import { run } from '../../test/support/process.ts'

const clients = 28
const pauseMs = 3
const wrongShownMax = 20

/** Makes the tables of a database and gives a token for it. */
export async function prepareDatabase(store: string, folder: string): Promise<string> {
  await succeeding(['migrate', '--store', store], folder)
  const token = await succeeding(['token', 'issue', '--account', 'load', '--store', store], folder)
  return token.trim()
}

async function succeeding(args: readonly string[], folder: string): Promise<string> {
  const { code, out, err } = await run(args, folder)
  if (code !== 0) throw new Error(`plants ${args.slice(0, 2).join(' ')} failed: ${err}`)
  return out
}

export function startLoad(urls: readonly string[], token: string): Load {
  const load = new Load(urls, token)
  load.start(clients, pauseMs)
  return load
}

/** Ends the load, prints what it saw, and gives whether nothing was wrong. */
export async function verdict(load: Load): Promise<boolean> {
  await load.stop()
  const { wrong, twice, lost, risen, invented } = await load.findings()
  const answers = Object.entries(load.statuses).map(([answer, count]) => `${answer}: ${count}`)
  console.log(`
answers: ${answers.join(', ')}
acknowledged creates whose plants are not there: ${lost.length}
plants that are there, although they were deleted or nothing was done: ${risen.length}
plants that nobody created: ${invented.length}
plants that a list shows more than once: ${twice}
wrong answers: ${wrong.length}${wrong
    .slice(0, wrongShownMax)
    .map((what) => `\n  ${what}`)
    .join('')}`)
  return lost.length + risen.length + invented.length + twice + wrong.length === 0
}

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
