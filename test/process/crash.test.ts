// The promise that matters most, under the hardest end: after kill -9 in the middle of concurrent
// creates and deletes, whatever was acknowledged holds.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { until } from '../support/clock.ts'
import { serve, tokenFor } from '../support/process.ts'
import { folderMaker } from '../support/service.ts'

const rounds = 25
const clients = 16

const newFolder = folderMaker()

/** What is known of an id: `unknown` while a write on it was cut off without an answer. */
type Known = 'present' | 'absent' | 'unknown'

/**
 * Creates and deletes ids of its own in turn until the server is gone, and notes what was
 * acknowledged.
 */
async function write(
  url: string,
  token: string,
  client: number,
  round: number,
  known: Map<number, Known>,
  acknowledged: () => void,
): Promise<void> {
  const mine = [...known.keys()].filter((id) => id % clients === client)
  for (let n = 0; ; n += 1) {
    const id =
      n % 3 === 2 ? (mine[n % mine.length] ?? client) : (round * 100_000 + n) * clients + client
    const before = known.get(id) ?? 'absent'
    known.set(id, 'unknown')
    const status = await (before === 'absent'
      ? create(url, token, id)
      : remove(url, token, id)
    ).catch(() => undefined)
    if (status === undefined) return
    if (before === 'absent') expect(status).toBe(200)
    if (before === 'present') expect(status).toBe(204)
    if (before === 'unknown') expect([204, 404]).toContain(status)
    known.set(id, before === 'absent' ? 'present' : 'absent')
    acknowledged()
  }
}

async function create(url: string, token: string, id: number): Promise<number> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  return (
    await fetch(`${url}/plants`, { method: 'POST', headers, body: `{"id":${id},"name":"${id}"}` })
  ).status
}

async function remove(url: string, token: string, id: number): Promise<number> {
  return (
    await fetch(`${url}/plants/${id}`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${token}` },
    })
  ).status
}

/** Compares the plants with the acknowledged writes, and settles the ids that were cut off. */
async function verify(url: string, token: string, known: Map<number, Known>): Promise<void> {
  const plants = (await (
    await fetch(`${url}/plants`, { headers: { Authorization: `Bearer ${token}` } })
  ).json()) as {
    name: string
  }[]
  const present = new Set(plants.map(({ name }) => Number(name)))
  expect(present.size).toBe(plants.length)
  const lost = [...known].filter(([id, state]) => state === 'present' && !present.has(id))
  const risen = [...known].filter(([id, state]) => state === 'absent' && present.has(id))
  const invented = [...present].filter((id) => !known.has(id))
  expect({ lost, risen, invented }).toEqual({ lost: [], risen: [], invented: [] })
  for (const [id, state] of known)
    if (state === 'unknown') known.set(id, present.has(id) ? 'present' : 'absent')
}

test(`${rounds} times kill -9 under concurrent creates and deletes lose nothing that was acknowledged`, async () => {
  const folder = newFolder()
  const token = await tokenFor('a', folder)
  const known = new Map<number, Known>()
  for (let round = 0; round < rounds; round += 1) {
    const server = serve(folder)
    const url = await server.url
    await verify(url, token, known)
    let writes = 0
    const writers = Array.from({ length: clients }, (_, client) =>
      write(url, token, client, round, known, () => {
        writes += 1
      }),
    )
    // Another number each time, so that the end comes at another moment of a commit.
    await until('enough is acknowledged', () => writes >= 100 + ((round * 37) % 300))
    server.process.kill('SIGKILL')
    await Promise.all(writers)
    await server.finished
    const database = new DatabaseSync(join(folder, 'plants.db'))
    expect(database.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
    database.close()
  }
  const last = serve(folder)
  await verify(await last.url, token, known)
  last.process.kill('SIGTERM')
  await last.finished
  // The test would prove nothing if hardly anything had been written.
  expect(known.size).toBeGreaterThan(rounds * clients)
}, 120_000)
