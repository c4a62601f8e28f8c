// The limit that the store sets: the same store and the same steps without HTTP, asked by as many
// callers as there would be connections. parts/throughput.ts starts this as a process of its own,
// with an Order as JSON; it prints a StorageResult.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../src/stores/open.ts'
import { storeOptions } from '../test/support/stores.ts'
import { baseStride, firstBase, seededPlant, stepAt, type Workload } from './workloads.ts'

export interface StorageOrder {
  readonly workloads: readonly Workload[]
  readonly callers: number
  readonly seconds: number
}

export interface StorageResult {
  readonly workload: string
  readonly requestsPerSecond: number
  readonly processorUs: number
}

const account = 'account'
const { workloads, callers, seconds } = JSON.parse(process.argv[2] ?? '') as StorageOrder
const folder = mkdtempSync(join(tmpdir(), 'plants-storage-'))
const randomBytes = (count: number): Uint8Array => new Uint8Array(count)
const store = await openStore(
  { scheme: 'sqlite', path: join(folder, 'plants.db') },
  { ...storeOptions, use: 'create', randomBytes },
)

/** Where the ids of a run begin; deletes begin where the creates before them did. */
let base = firstBase

async function ask(workload: Workload, n: number): Promise<void> {
  const { step, number } = stepAt(workload, n)
  const id = BigInt(base + number)
  const done =
    step.kind === 'create'
      ? (await store.plants.create(account, { id, ...seededPlant, idempotencyKey: null })) ===
        undefined
      : await store.plants.delete(account, id)
  if (!done) throw new Error(`${workload.name}: plant ${id} was not as it had to be`)
}

/** How many plants the last workload created. */
let created = 0

/** Deletes end with the last plant that was created, if not before. */
async function measure(workload: Workload): Promise<StorageResult> {
  const countMax = workload.deletes ? created : Number.POSITIVE_INFINITY
  if (!workload.deletes) base += baseStride
  const before = process.cpuUsage()
  const startMs = performance.now()
  let asked = 0
  const call = async (): Promise<void> => {
    while (asked < countMax && performance.now() - startMs < seconds * 1000) {
      asked += 1
      await ask(workload, asked - 1)
    }
  }
  await Promise.all(Array.from({ length: callers }, call))
  const { user, system } = process.cpuUsage(before)
  const requestsPerSecond = (asked / (performance.now() - startMs)) * 1000
  created = asked
  return { workload: workload.name, requestsPerSecond, processorUs: (user + system) / asked }
}

try {
  // The first time does not count: code is compiled.
  for (const workload of workloads) await measure(workload)
  const results: StorageResult[] = []
  for (const workload of workloads) results.push(await measure(workload))
  console.log(JSON.stringify(results))
} finally {
  await store.close()
  rmSync(folder, { recursive: true })
}
