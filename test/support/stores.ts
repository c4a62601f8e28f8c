// Stores for tests, empty each time: an SQLite file in a folder of its own, or a PostgreSQL
// database.
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../src/clock.ts'
import { issueToken } from '../../src/domain/access.ts'
import type { KeptPlant } from '../../src/domain/plant.ts'
import type { Store } from '../../src/domain/store.ts'
import { scopes } from '../../src/domain/token.ts'
import { Mistake } from '../../src/refused.ts'
import {
  readStoreLocation,
  type StoreLocation,
  type StoreOptions,
} from '../../src/stores/location.ts'
import { migrateStore, openStore } from '../../src/stores/open.ts'
import { commandDeadlines } from '../../src/stores/postgres/cluster/deadlines.ts'
import { Nodes } from '../../src/stores/postgres/cluster/nodes.ts'
import { type PostgresServer, sharedPostgres } from './postgres.ts'
import { temporaryFolder } from './service.ts'

export interface TestStore {
  readonly location: StoreLocation
  readonly dispose: () => Promise<void>
}

/** The kind of store that the tests of the service run on: `npm test` runs them on both. */
export const storeKind = process.env['PLANTS_TEST_STORE'] === 'postgres' ? 'postgres' : 'sqlite'

export async function temporaryStore(): Promise<TestStore> {
  return storeKind === 'postgres'
    ? await temporaryDatabase(await sharedPostgres())
    : temporaryFile()
}

function temporaryFile(): TestStore {
  const folder = temporaryFolder()
  return {
    location: { scheme: 'sqlite', path: join(folder, 'plants.db') },
    dispose: async () => rmSync(folder, { recursive: true }),
  }
}

/** Databases that are prepared and not in use, by the port of their server. */
const free = new Map<number, string[]>()
let databases = 0

/** A database that is prepared and empty; it is used again after its test. */
export async function temporaryDatabase(server: PostgresServer): Promise<TestStore> {
  const unused = free.get(server.port) ?? []
  free.set(server.port, unused)
  const url = unused.pop() ?? (await newDatabase(server))
  return { location: locationOf(url), dispose: async () => void unused.push(await emptied(url)) }
}

async function newDatabase(server: PostgresServer): Promise<string> {
  databases += 1
  const url = await server.createDatabase(`plants_${process.pid}_${databases}`)
  await prepare(url)
  return url
}

export function locationOf(url: string): StoreLocation {
  const location = readStoreLocation(url, {})
  if (location instanceof Mistake) throw new Error(`the store must be ${location.mustBe}`)
  return location
}

/** Makes the tables. */
export async function prepare(url: string): Promise<void> {
  await migrateStore(locationOf(url), false, systemClock)
}

/** Removes all that a database holds. */
export async function emptied(url: string): Promise<string> {
  const location = locationOf(url)
  if (location.scheme !== 'postgres') throw new Error(`${url} is no database`)
  // As the store does, because the driver's client knows no URL with several hosts.
  const nodes = new Nodes(location, commandDeadlines, systemClock)
  for (const table of ['plants', 'tokens', 'batches'])
    await nodes.send({ name: '', text: `delete from ${table}` }, [], true)
  await nodes.close()
  return url
}

/** What a test opens a store with, beside what it is about. */
export const storeOptions = {
  use: 'existing',
  patience: 'of a request',
  clock: systemClock,
  randomBytes,
  note: () => {},
  warn: () => {},
} as const

/** Opens the store in a file, which is made if there is none. */
export function openFile(path: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  return openStore({ scheme: 'sqlite', path }, { ...storeOptions, use: 'create', ...options })
}

/** Does something with a store, which is made if it is a file that is not there. */
export async function withStore<Value>(
  url: string,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  const store = await openStore(locationOf(url), { ...storeOptions, use: 'create' })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** Issues a token for an account and creates its plants; resolves to the token. */
export function fill(url: string, account: string, plants: readonly KeptPlant[]): Promise<string> {
  return withStore(url, async (store) => {
    const request = { account, label: 'ä "x"', scopes, lifetimeMs: 3_600_000 }
    const { plain } = await issueToken(store.tokens, request, Date.now(), randomBytes)
    for (let begun = 0; begun < plants.length; begun += 1000)
      await Promise.all(
        plants.slice(begun, begun + 1000).map((plant) => store.plants.create(account, plant)),
      )
    return plain.reveal()
  })
}

export function plant(id: number | bigint, parts: Partial<KeptPlant> = {}): KeptPlant {
  return { id: BigInt(id), name: `plant ${id}`, tag: null, idempotencyKey: null, ...parts }
}
