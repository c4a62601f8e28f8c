// scripts/bun lab/profile.ts [creates | "lists of 20" | …]: where the service spends a request,
// as a table of its threads (processor time by the kernel's count) and one of its functions
// (samples of the runtime's profiler).
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { Bench, seed } from './bench.ts'
import { profiledService } from './servers.ts'
import { creates, listsOf20, listsOf1000, mix, variedLists, type Workload } from './workloads.ts'
import { load, type Measured, missingTools, stock } from './wrk.ts'

const connections = 64
const seconds = 5
const functionsShown = 30

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
  }[]
  /** The node of each sample; one sample is as much time as another. */
  readonly samples: readonly number[]
}

async function main(name: string): Promise<void> {
  const workload = [creates, listsOf20, variedLists, listsOf1000, mix].find(
    (one) => one.name === name,
  )
  const problem = workload === undefined ? `there is no workload "${name}"` : missingTools()
  if (workload === undefined || problem !== undefined) throw new Error(problem)
  const folder = mkdtempSync(join(tmpdir(), 'plants-profile-'))
  try {
    await profile(new Bench(folder, () => {}), workload, join(folder, 'profile'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function profile(bench: Bench, workload: Workload, folder: string): Promise<void> {
  const server = await profiledService(bench.newStore(), folder)
  await seed(server)
  const run = async (): Promise<Measured> => {
    const asked = {
      url: server.url,
      tokens: [server.token],
      workload,
      base: bench.newBase(),
      connections,
    }
    await stock(asked)
    return await load({ ...asked, seconds })
  }
  try {
    await run()
    const before = threadTimes(server.processId)
    const { requests } = await run()
    console.log(`${workload.name}, ${connections} connections, processor time for each request:`)
    for (const [thread, times] of threadTimes(server.processId)) {
      const of = (index: number): number =>
        (((times[index] ?? 0) - (before.get(thread)?.[index] ?? 0)) * 1000) / requests
      if (of(0) + of(1) > 0.1)
        console.log(
          `  ${thread.padEnd(24)} ${of(0).toFixed(1).padStart(5)} µs, and ${of(1).toFixed(1)} µs in the kernel`,
        )
    }
  } finally {
    await server.stop()
  }
  console.log(`\nof the samples in JavaScript:\n${functionShares(folder).join('\n')}`)
}

/**
 * Milliseconds in user space and in the kernel, by the thread's number and name (proc_pid_stat(5)).
 */
function threadTimes(processId: number): ReadonlyMap<string, readonly number[]> {
  const tasks = `/proc/${processId}/task`
  return new Map(
    readdirSync(tasks).map((task) => {
      const [, name = '', rest = ''] =
        /\((.*)\) (.*)/.exec(readFileSync(`${tasks}/${task}/stat`, 'utf8')) ?? []
      const fields = rest.split(' ')
      return [`${name} ${task}`, [Number(fields[11]) * 10, Number(fields[12]) * 10]]
    }),
  )
}

function functionShares(folder: string): readonly string[] {
  const [file = ''] = readdirSync(folder)
  const { nodes, samples } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url } }) => [
      id,
      `${functionName || '(native)'} ${basename(url)}`,
    ]),
  )
  const counts = new Map<string, number>()
  for (const sample of samples)
    counts.set(names.get(sample) ?? '', (counts.get(names.get(sample) ?? '') ?? 0) + 1)
  const sorted = [...counts].sort(([, one], [, other]) => other - one).slice(0, functionsShown)
  return sorted.map(
    ([name, count]) => `  ${((count / samples.length) * 100).toFixed(1).padStart(5)} %  ${name}`,
  )
}

try {
  await main(process.argv[2] ?? creates.name)
} catch (error) {
  console.error(`profile: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
