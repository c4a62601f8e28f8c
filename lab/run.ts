// npm run bench [-- [PART ...] [--quick] [--json]]: the service beside its limits and its peers.
// docs/benchmarks.md tells the method.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Bench } from './bench.ts'
import { describeMachine } from './machine.ts'
import { measureThroughput, quickThroughput } from './parts/throughput.ts'
import { type Part, parts, type Results } from './parts.ts'
import { missingPrograms } from './programs.ts'
import { report } from './report.ts'
import { peers } from './servers.ts'

const usage = `Usage: npm run bench -- [PART ...] [--quick] [--json]

Parts: ${Object.keys(parts).join(', ')}. Without any, all of them: 40 minutes.
  --quick  throughput only, in short, beside one peer: a minute
  --json   every round as JSON, rather than medians as tables`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.help) {
    console.log(usage)
    return
  }
  const unknown = positionals.find((name) => !Object.hasOwn(parts, name))
  if (unknown !== undefined) throw new Error(`there is no part "${unknown}"\n\n${usage}`)
  const missing = missingPrograms({
    wrk: 'wrk',
    taskset: 'util-linux',
    curl: 'curl',
    cc: 'gcc libc6-dev',
  })
  if (missing !== undefined) throw new Error(missing)
  if (peers.length === 0)
    console.error('bench: the peers are left out; npm ci --prefix lab installs them.')
  if (values.quick && positionals.length > 0)
    throw new Error('--quick is about no other part than throughput')
  const chosen = (positionals.length === 0 ? Object.keys(parts) : positionals) as Part[]
  const results = await measure(values.quick ? 'quick' : chosen)
  console.log(values.json ? JSON.stringify(results, undefined, 1) : report(results))
}

async function measure(chosen: readonly Part[] | 'quick'): Promise<Results> {
  const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
  const tell = (text: string): void =>
    void (process.stderr.isTTY && process.stderr.write(`\r\u001b[K${text}`))
  // Also if a signal ends it.
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const bench = new Bench(folder, tell)
  const results: Results = { machine: await describeMachine(folder) }
  if (chosen === 'quick') results.throughput = await measureThroughput(bench, quickThroughput)
  else for (const name of chosen) await measurePart(name, bench, results)
  tell('')
  return results
}

/** What one part finds is kept if another fails. */
async function measurePart(name: Part, bench: Bench, results: Results): Promise<void> {
  try {
    Object.assign(results, { [name]: await parts[name](bench) })
  } catch (error) {
    console.error(`bench: ${name}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}

process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))
try {
  await main()
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
