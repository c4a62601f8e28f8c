// Long texts are kept apart from their plants: what that must hold in the file itself, and how a
// file of the version before it gets there. What callers see of it is in the conformance suite.
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { systemClock } from '../../../src/clock.ts'
import type { KeptPlant } from '../../../src/domain/plant.ts'
import type { Store } from '../../../src/domain/store.ts'
import { verifyStore } from '../../../src/stores/open.ts'
import { connect } from '../../../src/stores/sqlite/connection.ts'
import { shortTextBytesMax } from '../../../src/stores/sqlite/schema.ts'
import { SqliteStore } from '../../../src/stores/sqlite/store.ts'
import { openChannel } from '../../../src/stores/sqlite/writer/channel.ts'
import type { Summary } from '../../../src/stores/summary.ts'
import { temporaryFolder } from '../../support/service.ts'
import { openFile, storeOptions } from '../../support/stores.ts'

const folder = temporaryFolder()
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function newPath(): string {
  files += 1
  return `${folder}/${files}.db`
}

function withDatabase<Value>(path: string, use: (database: DatabaseSync) => Value): Value {
  const database = new DatabaseSync(path)
  try {
    return use(database)
  } finally {
    database.close()
  }
}

function count(path: string, from: string): number {
  return withDatabase(
    path,
    (database) => (database.prepare(`select count(*) as n from ${from}`).get() as { n: number }).n,
  )
}

async function withStore<Value>(
  path: string,
  use: (store: Store) => Promise<Value>,
): Promise<Value> {
  const store = await openFile(path)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

function plant(id: number, length: number, parts: Partial<KeptPlant> = {}): KeptPlant {
  return { id: BigInt(id), name: 'n'.repeat(length), tag: null, idempotencyKey: null, ...parts }
}

/** Short and long by turns, and such as are just one or the other. */
const lengths = [
  5,
  100_000,
  5,
  600,
  shortTextBytesMax,
  shortTextBytesMax + 1,
  5,
  1000,
  1_000_000,
  5,
]
const plants = lengths.map((length, n) =>
  plant(n, length, { idempotencyKey: n % 2 === 0 ? 'k'.repeat(255) : null }),
)
const longOnes = lengths.filter((length) => length > shortTextBytesMax).length

const overflow = (table: string): string =>
  `dbstat where name = '${table}' and pagetype = 'overflow'`

async function keptOf(store: Store, account: string): Promise<KeptPlant[]> {
  return (await store.kept.plants(account, { limit: 1000 })).plants.map((each) => ({ ...each }))
}

describe('long texts', () => {
  test('stay out of the tree that every account searches: no search there reads more than a page for a comparison', async () => {
    const path = newPath()
    await withStore(path, async (store) => {
      for (const account of ['a', 'x'.repeat(255)])
        for (const each of plants) await store.plants.create(account, each)
    })
    expect(count(path, overflow('plants'))).toBe(0)
    expect(count(path, overflow('long_texts'))).toBeGreaterThan(500)
  })

  test('cost one page more at most, even if the name of the account alone is too long for a page', async () => {
    const path = newPath()
    await withStore(path, async (store) => {
      for (const each of plants)
        await store.plants.create('\ud83c\udf35'.repeat(255), {
          ...each,
          idempotencyKey: 'k'.repeat(255),
        })
    })
    expect(count(path, overflow('plants'))).toBeLessThanOrEqual(plants.length)
  })

  test('leave nothing behind: not a delete, and not a create that was refused', async () => {
    const path = newPath()
    await withStore(path, async (store) => {
      const creates = plants.flatMap((each) => [
        store.plants.create('a', each),
        store.plants.create('a', plant(Number(each.id), 2000)),
      ])
      const answers = await Promise.all(creates)
      expect(answers.filter((answer) => answer === undefined)).toHaveLength(plants.length)
      expect(count(path, 'long_texts')).toBe(longOnes)
      for (const { id } of plants.slice(2)) expect(await store.plants.delete('a', id)).toBe(true)
      expect(count(path, 'long_texts')).toBe(1)
      expect(await keptOf(store, 'a')).toEqual(plants.slice(0, 2))
      await Promise.all([
        store.plants.delete('a', 1n),
        store.plants.create('a', plant(1, 3000)),
        store.plants.delete('a', 1n),
      ])
      expect(count(path, 'long_texts')).toBe(0)
    })
  })

  test('are found from one scan of a range of keys, without sorting', async () => {
    const path = newPath()
    await withStore(path, async () => {})
    const asked: string[] = []
    const database = await connect(path, systemClock)
    const prepare = database.prepare.bind(database)
    database.prepare = (sql: string): StatementSync => {
      asked.push(sql)
      return prepare(sql)
    }
    const channel = await openChannel({ path, place: [] }, systemClock, () => {})
    const store = new SqliteStore(database, channel, [], systemClock)
    const plansOf = (part: string): string[] =>
      asked
        .filter((sql) => sql.includes('long_texts') && sql.includes(part))
        .map((sql) =>
          (prepare(`explain query plan ${sql}`).all() as { detail: string }[])
            .map(({ detail }) => detail)
            .join('; '),
        )
    const text = 'SEARCH long_texts USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN'
    const list = `SEARCH plants USING PRIMARY KEY (account=? AND id>? AND id<?); ${text}`
    expect(plansOf('limit')).toEqual([list, list])
    expect(plansOf('id = cast')).toEqual([
      `SEARCH plants USING PRIMARY KEY (account=? AND id=?); ${text}`,
    ])
    await store.close()
  })
})

/** A file as the first version of the tables has it. */
function oldFile(accounts: readonly string[], extra = ''): string {
  const path = newPath()
  withDatabase(path, (database) => {
    database.exec(`
      pragma journal_mode = wal;
      create table plants (
        account text not null, id integer not null, name text not null, tag text, idempotency_key text,
        primary key (account, id)
      ) strict, without rowid;
      create table tokens (
        hash blob not null primary key, id text not null unique, account text not null, label text not null,
        scopes text not null, created_at_ms integer not null, expires_at_ms integer, revoked_at_ms integer,
        last_used_at_ms integer
      ) strict, without rowid;
      ${extra};
      pragma application_id = 0x706c616e; pragma user_version = 1`)
    const insert = database.prepare('insert into plants values (?, ?, ?, ?, ?)')
    for (const account of accounts)
      for (const { id, name, tag, idempotencyKey } of plants)
        insert.run(account, id, `${account} ${name}`, tag, idempotencyKey)
  })
  return path
}

const oldPlants = (account: string): KeptPlant[] =>
  plants.map((each) => ({ ...each, name: `${account} ${each.name}` }))

describe('a file of the version before', () => {
  const accounts = ['a', 'B', 'ä']

  test('opens with all that it holds, nothing twice, and opens again', async () => {
    const path = oldFile(accounts)
    expect(count(path, overflow('plants'))).toBeGreaterThan(500)
    for (let time = 0; time < 2; time += 1) {
      await withStore(path, async (store) => {
        for (const account of accounts)
          expect(await keptOf(store, account)).toEqual(oldPlants(account))
        expect(await store.kept.countPlants()).toBe(accounts.length * plants.length)
      })
      // "a " makes a long one of the plant that is just short.
      expect(count(path, 'long_texts')).toBe(accounts.length * (longOnes + 1))
      expect(count(path, overflow('plants'))).toBe(0)
    }
    await withStore(path, async (store) => {
      expect(await store.plants.create('B', plant(1000, 2000))).toBeUndefined()
      for (const { id } of plants) expect(await store.plants.delete('a', id)).toBe(true)
      expect(await keptOf(store, 'B')).toEqual([...oldPlants('B'), plant(1000, 2000)])
      expect(await keptOf(store, 'ä')).toEqual(oldPlants('ä'))
    })
    expect(count(path, 'long_texts')).toBe(2 * (longOnes + 1) + 1)
    expect(count(path, "pragma_integrity_check where integrity_check <> 'ok'")).toBe(0)
  })

  test('is verified as it is, and has the checksum that it has as one of this version', async () => {
    const path = oldFile(accounts)
    withDatabase(path, (database) => {
      const insert = database.prepare(
        "insert into tokens values (?, ?, ?, '', 'plants:read', 0, null, null, null)",
      )
      accounts.forEach((account, n) => {
        insert.run(new Uint8Array(32).fill(n + 1), `t${n}`, account)
      })
      database.exec('pragma wal_checkpoint(truncate)')
    })
    const before = readFileSync(path)
    const verify = (): Promise<Summary> =>
      verifyStore(
        { scheme: 'sqlite', path },
        { ...storeOptions, progress: () => {}, signal: new AbortController().signal },
      )
    const summary = await verify()
    expect(summary.plants).toBe(accounts.length * plants.length)
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(existsSync(`${path}-wal`)).toBe(false)
    await withStore(path, async () => {})
    expect(readFileSync(path).equals(before)).toBe(false)
    expect(await verify()).toEqual(summary)
  })

  test('is changed once if many open it at the same time', async () => {
    const path = oldFile(accounts)
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => openFile(path, { use: 'existing' })),
    )
    for (const store of stores) expect(await keptOf(store, 'B')).toEqual(oldPlants('B'))
    for (const store of stores) await store.close()
    expect(count(path, 'long_texts')).toBe(accounts.length * (longOnes + 1))
  })

  test('stays as it was if its last change fails', async () => {
    const inTheWay =
      'create trigger long_text_goes_with_its_plant after delete on plants begin select 1; end'
    const path = oldFile(accounts, inTheWay)
    const content = (): unknown =>
      withDatabase(path, (database) => [
        database.prepare('pragma user_version').get(),
        database.prepare('select name, sql from sqlite_schema order by name').all(),
        database
          .prepare(
            'select account, id, octet_length(name) as bytes, tag, idempotency_key from plants',
          )
          .all(),
      ])
    const before = content()
    await expect(openFile(path, { use: 'existing' })).rejects.toThrow('cannot be used')
    expect(content()).toEqual(before)
    withDatabase(path, (database) => database.exec('drop trigger long_text_goes_with_its_plant'))
    await withStore(path, async (store) => expect(await keptOf(store, 'a')).toEqual(oldPlants('a')))
  })

  test('gives a process of that version that still runs no empty names, and takes no plants from it', async () => {
    const path = oldFile(accounts)
    await withStore(path, async () => {})
    withDatabase(path, (database) => {
      expect(() => database.prepare('select id, name, tag from plants')).toThrow(
        'no such column: name',
      )
      expect(() => database.prepare('insert into plants values (?, ?, ?, ?, ?)')).toThrow(
        'has 6 columns',
      )
      database.exec("delete from plants where account = 'a'")
    })
    expect(count(path, 'long_texts')).toBe(2 * (longOnes + 1))
  })
})
