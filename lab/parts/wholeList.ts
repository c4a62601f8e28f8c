// A list of a million plants to one reader, fast or slow: how quick it is, what it takes of memory,
// and how long others wait meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { type Outcome, openLoop } from '../openLoop.ts'
import { loaderCore, runPinned } from '../programs.ts'
import { seedStore } from '../seed.ts'
import { type BenchServer, startService } from '../servers.ts'
import { listsOf20 } from '../workloads.ts'

const plants = 1_000_000
const rounds = 3
/** Until then the runtime has given back memory that it does not use. */
const idleAfterMs = 5000
/** What the slow reader takes. */
const slowBytesPerSecond = 8 * 1024 * 1024
const probeSeconds = 4
/** Few enough that the reader, on the same core, is hardly held up. */
const probesPerSecond = 200

export interface WholeList {
  readonly reader: 'none' | 'fast' | 'slow'
  readonly round: number
  readonly megabytesPerSecond: number
  /**
   * Beyond what the process held before its first request: the runtime compiles the code meanwhile.
   */
  readonly peakAboveFreshMiB: number
  /**
   * Beyond what the process held that had answered lists of 20, and such lists, for a while and
   * then rested.
   */
  readonly peakAboveUsedMiB: number
  /** Of lists of 20 beside it, at a constant rate. */
  readonly others: Pick<Outcome, 'p50Ms' | 'p99Ms' | 'maxMs'>
}

export async function measureWholeLists(bench: Bench): Promise<readonly WholeList[]> {
  const path = bench.newStore()
  bench.tell('filling a store with a million plants')
  const [token = ''] = await seedStore(path, 1, plants, plants)
  const results: WholeList[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const reader of ['none', 'fast', 'slow'] as const) {
      bench.tell(`whole list, round ${round + 1} of ${rounds}, reader: ${reader}`)
      results.push({
        reader,
        round,
        ...(await measure({ ...(await startService(`sqlite:${path}`)), token }, reader)),
      })
    }
  }
  return results
}

/** On a process of its own: the list alone, then beside others, then alone again. */
async function measure(
  server: BenchServer,
  reader: WholeList['reader'],
): Promise<Omit<WholeList, 'reader' | 'round'>> {
  try {
    const fresh = await readAlone(server, reader)
    const others = await probeBesideReader(server, reader)
    const used = await readAlone(server, reader)
    return {
      megabytesPerSecond: fresh.megabytesPerSecond,
      peakAboveFreshMiB: fresh.aboveMiB,
      peakAboveUsedMiB: used.aboveMiB,
      others,
    }
  } finally {
    await server.stop()
  }
}

async function readAlone(
  server: BenchServer,
  reader: WholeList['reader'],
): Promise<{ megabytesPerSecond: number; aboveMiB: number }> {
  await sleep(idleAfterMs)
  const idleMiB = server.residentMiB()
  server.forgetPeak()
  const megabytesPerSecond = await read(server, reader)
  return { megabytesPerSecond, aboveMiB: server.peakMiB() - idleMiB }
}

async function probe({ url, token }: BenchServer): Promise<WholeList['others']> {
  const stream = {
    name: listsOf20.name,
    workload: listsOf20,
    base: 0,
    connections: 8,
    ratePerSecond: probesPerSecond,
  }
  const [outcome] = await openLoop({ url, token, seconds: probeSeconds, streams: [stream] })
  if (outcome === undefined) throw new Error('one stream has one outcome')
  const { p50Ms, p99Ms, maxMs } = outcome
  return { p50Ms, p99Ms, maxMs }
}

/** The reader reads over and over until the probe is done. */
async function probeBesideReader(
  server: BenchServer,
  reader: WholeList['reader'],
): Promise<WholeList['others']> {
  let probed = false
  const reading = async (): Promise<void> => {
    while (reader !== 'none' && !probed) await read(server, reader)
  }
  const probing = probe(server).finally(() => {
    probed = true
  })
  const [others] = await Promise.all([probing, reading()])
  return others
}

/** Reads the list to its end; gives megabytes (10^6 bytes) per second. */
async function read({ url, token }: BenchServer, reader: WholeList['reader']): Promise<number> {
  if (reader === 'none') return 0
  const slowly = reader === 'slow' ? ['--limit-rate', String(slowBytesPerSecond)] : []
  const headers = ['-H', `Authorization: Bearer ${token}`]
  const written = ['-o', '/dev/null', '-w', '%{size_download} %{time_total}']
  // Nice, so that what measures the others, on the same core, goes first.
  const output = await runPinned(
    [
      'nice',
      '-n',
      '19',
      'curl',
      '-sS',
      '--fail',
      ...slowly,
      ...headers,
      ...written,
      `${url}/plants`,
    ],
    loaderCore,
  )
  const [bytes, seconds] = output.split(' ').map(Number)
  return Number(bytes) / Number(seconds) / 1e6
}
