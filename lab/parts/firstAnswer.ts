// How soon a start answers its first list of 20, and what the process holds in memory then.
import type { Bench } from '../bench.ts'
import { seedStore } from '../seed.ts'
import { type BenchServer, ceiling, service, sqlitePeers, startService } from '../servers.ts'
import { median } from '../statistics.ts'

const rounds = 7
const manyPlants = 1_000_000
/** After this, nothing that a start has begun is under way any more. */
const idleAfterMs = 1000
const pollMs = 1

export interface FirstAnswer {
  readonly contender: string
  readonly plants: number
  readonly firstAnswerMs: number
  readonly idleMiB: number
}

export async function measureFirstAnswers(bench: Bench): Promise<readonly FirstAnswer[]> {
  const cases = await casesOf(bench)
  for (const { start, answersMs, idleMiB } of bench.turns('start', rounds, cases)) {
    const server = await start()
    try {
      answersMs.push(await firstAnswerMs(server))
      await Bun.sleep(idleAfterMs)
      idleMiB.push(server.residentMiB())
    } finally {
      await server.stop()
    }
  }
  return cases.map(({ contender, plants, answersMs, idleMiB }) => ({
    contender,
    plants,
    firstAnswerMs: median(answersMs),
    idleMiB: median(idleMiB),
  }))
}

interface Case {
  readonly contender: string
  readonly plants: number
  readonly start: () => Promise<BenchServer>
  /** What was measured, in each round. */
  readonly answersMs: number[]
  readonly idleMiB: number[]
}

/**
 * The service's stores hold a token already: without one there is no list. The peers take theirs at
 * the start.
 */
async function casesOf(bench: Bench): Promise<readonly Case[]> {
  const ofService = async (plants: number): Promise<Case> => {
    const path = bench.newStore()
    const [token = ''] = await seedStore(path, 1, plants, plants)
    return {
      contender: service.name,
      plants,
      start: async () => ({ ...(await startService(`sqlite:${path}`)), token }),
      answersMs: [],
      idleMiB: [],
    }
  }
  const others = [ceiling, ...sqlitePeers].map((contender): Case => {
    const path = bench.newStore()
    const start = (): Promise<BenchServer> => contender.start(path)
    return { contender: contender.name, plants: 0, start, answersMs: [], idleMiB: [] }
  })
  return [await ofService(0), await ofService(manyPlants), ...others]
}

async function firstAnswerMs({ url, token, startedMs }: BenchServer): Promise<number> {
  for (;;) {
    const response = await fetch(`${url}/plants?limit=20`, {
      headers: { Authorization: `Bearer ${token}` },
    }).catch(() => undefined)
    if (response?.ok) {
      await response.text()
      return performance.now() - startedMs
    }
    if (performance.now() - startedMs > 10_000)
      throw new Error(`${url} gives no list: ${response?.status}`)
    await Bun.sleep(pollMs)
  }
}
