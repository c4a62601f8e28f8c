// scripts/bun lab/writer.ts: what it costs, and what it gives, to keep the writer off the thread
// that answers. The same store with its batches applied in a worker thread and inline, under
// creates alone and under creates with a reader beside them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '../src/stores/sqlite/connection.ts'
import { prepareFile } from '../src/stores/sqlite/file.ts'
import { migrate } from '../src/stores/sqlite/schema.ts'
import { SqliteStore } from '../src/stores/sqlite/store.ts'
import { BatchWriter } from '../src/stores/sqlite/writer/batch.ts'
import type { Channel } from '../src/stores/sqlite/writer/channel.ts'
import { writerThread } from '../src/stores/sqlite/writerThread.ts'
import { median } from './statistics.ts'

const rounds = 5
const roundMs = 1500

async function inlineWriter(path: string): Promise<Channel> {
  const database = connect(path)
  const writer = new BatchWriter(database)
  return {
    send: async (batch) => JSON.stringify(writer.apply(JSON.parse(batch))),
    close: async () => database.close(),
    ready: async () => {},
  }
}

interface Measured {
  readonly createsPerSecond: number
  /** How long the event loop let a due turn wait, at the 99th percentile. */
  readonly delayP99Ms: number
}

async function measure(
  placement: (path: string) => Promise<Channel>,
  creators: number,
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'plants-writer-'))
  const path = join(folder, 'plants.db')
  prepareFile(path, { use: 'create' })
  const database = connect(path)
  migrate(database)
  const store = new SqliteStore(database, await placement(path), [])
  const endMs = performance.now() + roundMs
  let created = 0
  const create = async (): Promise<void> => {
    while (performance.now() < endMs) {
      created += 1
      await store.plants.create('a', {
        id: BigInt(created),
        name: 'Monstera deliciosa',
        tag: 'indoor',
        idempotencyKey: null,
      })
    }
  }
  const [delays] = await Promise.all([
    watchDelays(endMs),
    ...Array.from({ length: creators }, create),
  ])
  await store.close()
  rmSync(folder, { recursive: true })
  return {
    createsPerSecond: (created / roundMs) * 1000,
    delayP99Ms: delays[Math.floor(delays.length * 0.99)] ?? Number.NaN,
  }
}

/** Takes a turn of the event loop every millisecond and sorts how much too late each came. */
async function watchDelays(endMs: number): Promise<number[]> {
  const delays: number[] = []
  while (performance.now() < endMs) {
    const dueMs = performance.now() + 1
    await new Promise((resolve) => setTimeout(resolve, 1))
    delays.push(Math.max(0, performance.now() - dueMs))
  }
  return delays.sort((one, other) => one - other)
}

for (const creators of [1, 64]) {
  const results = { thread: [] as Measured[], inline: [] as Measured[] }
  for (let round = 0; round < rounds; round += 1) {
    results.thread.push(
      await measure((path) => writerThread({ path, place: [] }, () => {}), creators),
    )
    results.inline.push(await measure(inlineWriter, creators))
  }
  for (const [placement, measured] of Object.entries(results)) {
    const creates = median(measured.map(({ createsPerSecond }) => createsPerSecond)).toFixed(0)
    const delay = median(measured.map(({ delayP99Ms }) => delayP99Ms)).toFixed(2)
    console.log(
      `${String(creators).padStart(2)} creators, writer ${placement.padEnd(6)}: ${creates.padStart(6)} creates/s, event loop late by ${delay} ms (p99)`,
    )
  }
}
