// `plants backup`, `verify` and `restore`: what a copy holds that was made beside a busy server, what is left if one is
// interrupted, what is found damaged, and what is refused.
import { describe, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { verifyStore } from '../../src/stores/open.ts'
import { until } from '../support/clock.ts'
import { mayMount } from '../support/operatingSystem.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { makeStore, run, serve, start, tokenFor } from '../support/process.ts'
import { call, folderMaker } from '../support/service.ts'
import { fill, locationOf, plant, prepare, storeOptions, withStore } from '../support/stores.ts'

const newFolder = folderMaker()

/** A folder with a store, plants.db, of so many plants of the account "a". */
async function folderWith(plants: number, length = 2500): Promise<string> {
  const folder = newFolder()
  await fill(
    `sqlite:${folder}/plants.db`,
    'a',
    Array.from({ length: plants }, (_, id) => plant(id, { name: 'n'.repeat(length) })),
  )
  return folder
}

function idsOf(path: string, account: string): Promise<readonly bigint[]> {
  return withStore(`sqlite:${path}`, async (store) => {
    const { plants } = await store.kept.plants(account, { limit: 1e6, textMax: 1e9 })
    return plants.map(({ id }) => id)
  })
}

/** Creates plants with rising ids from several clients until it is stopped. */
function writing(
  url: string,
  token: string,
): { acknowledged: bigint[]; stop: () => Promise<void> } {
  const acknowledged: bigint[] = []
  let next = 0n
  let stopped = false
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const client = async (): Promise<void> => {
    while (!stopped) {
      const id = next
      next += 1n
      const body = `{"id":${id},"name":"${'n'.repeat(Number(id % 1000n))}"}`
      const { status } = await fetch(`${url}/plants`, { method: 'POST', headers, body })
      expect(status).toBe(200)
      acknowledged.push(id)
    }
  }
  const clients = Promise.all(Array.from({ length: 8 }, client))
  return {
    acknowledged,
    stop: async () => {
      stopped = true
      await clients
    },
  }
}

/** What `plants verify` says of a whole store. */
const summary = (out: string): string => / is whole: (.*)\n$/.exec(out)?.[1] ?? `not whole: ${out}`

async function verified(folder: string, place: string): Promise<string> {
  const { code, out } = await run(['verify', place], folder)
  expect(code).toBe(0)
  return summary(out)
}

describe('plants backup', () => {
  test('copies a store while a server writes to it: all that was acknowledged before is in it, and writes go on', async () => {
    const folder = await folderWith(20_000)
    const token = await tokenFor('b', folder)
    const server = serve(folder)
    const { acknowledged, stop } = writing(await server.url, token)
    await until('some are acknowledged', () => acknowledged.length > 300)
    const before = [...acknowledged]
    const { code, out } = await run(['backup', 'copy.db'], folder)
    const after = acknowledged.length
    expect(code).toBe(0)
    expect(after).toBeGreaterThan(before.length)
    const { size, mode } = statSync(join(folder, 'copy.db'))
    expect(mode & 0o777).toBe(0o600)
    const [, plants] =
      /^\S+\/copy\.db is a backup of sqlite:\S+\/plants\.db: (\d+) plants and 2 tokens in (\d+) bytes\.\n$/.exec(
        out,
      ) ?? []
    expect(out).toContain(` ${size} bytes`)
    const held = new Set(await idsOf(join(folder, 'copy.db'), 'b'))
    expect(before.filter((id) => !held.has(id))).toEqual([])
    expect(Number(plants)).toBe(20_000 + held.size)
    await stop()
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  }, 60_000)

  test.each([
    ['SIGKILL', null],
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)(
    'that %s interrupts leaves the store alone and no half file',
    async (signal, exitCode) => {
      const folder = await folderWith(40_000)
      const backup = start(['backup', 'copy.db'], folder)
      const making = (): string[] => readdirSync(folder).filter((name) => /^copy\.db/.test(name))
      await until('the copy is being made', () => making().length > 0)
      backup.process.kill(signal)
      const { code, out, err } = await backup.finished
      expect([code, out]).toEqual([exitCode, ''])
      expect(err.includes('Interrupted.')).toBe(signal !== 'SIGKILL')
      // A process that is killed cannot clean up.
      expect(making().length).toBe(signal === 'SIGKILL' ? 1 : 0)
      expect(making()).not.toContain('copy.db')
      expect((await run(['backup', 'copy.db'], folder)).code).toBe(0)
      expect(await idsOf(join(folder, 'copy.db'), 'a')).toHaveLength(40_000)
    },
    60_000,
  )

  test('holds all of the store in one file that may stand where nothing can be written', async () => {
    const folder = await folderWith(100, 100)
    expect((await run(['backup', 'copy.db'], folder)).code).toBe(0)
    // SQLite makes a log beside a file that says that it has one.
    expect([...readFileSync(join(folder, 'copy.db')).subarray(18, 20)]).toEqual([1, 1])
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'plants.db'])
  })

  test('shows its progress', async () => {
    const folder = await folderWith(1000)
    const { err } = await run(['backup', 'copy.db'], folder)
    expect(err).toMatch(/^pages: 100 %, (\d+) of \1, \d+\/s\n$/)
  })

  test.skipIf(!mayMount())('on a full disk says so and leaves nothing', async () => {
    const folder = await folderWith(1000)
    const disk = join(folder, 'disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
    try {
      const { code, out, err } = await run(['backup', 'disk/copy.db'], folder)
      expect([code, out]).toEqual([1, ''])
      expect(err).toEndWith(
        `plants: The store ${disk}/copy.db cannot be made from ${folder}/plants.db: the disk is full.\n`,
      )
      expect(readdirSync(disk)).toEqual([])
    } finally {
      execFileSync('umount', [disk])
    }
  })

  test('refuses with a sentence what it cannot do, and overwrites nothing', async () => {
    const folder = newFolder()
    await makeStore(folder)
    writeFileSync(join(folder, 'taken'), 'taken')
    symlinkSync('nowhere', join(folder, 'link'))
    writeFileSync(join(folder, 'gone-wal'), '')
    mkdirSync(join(folder, 'folder'))
    const isThere =
      'it is there already, and nothing is ever overwritten; move it away, or name another file.'
    for (const [args, code, sentence] of [
      [['taken'], 1, `${folder}/taken cannot be made from ${folder}/plants.db: ${isThere}`],
      [['link'], 1, isThere],
      [['folder'], 1, isThere],
      [['plants.db'], 1, isThere],
      [['gone'], 1, 'the file is missing, but its log (gone-wal) is there'],
      [['none/copy.db'], 1, 'its folder does not exist; make it first.'],
      [['copy.db', '--store', 'sqlite:no.db'], 1, 'no.db cannot be used: there is no such file'],
      [[], 2, 'FILE is missing.'],
      [['folder/'], 2, 'FILE must be sqlite:FILE, such as sqlite:folder/plants.db, not "folder/".'],
      [['postgres://h/d'], 2, 'FILE must be '],
      [
        ['copy.db', '--store', 'postgres://u:secret@h/d'],
        2,
        '--store must be sqlite:FILE, not postgres://u@h:5432/d: a database is backed up by its own programs',
      ],
    ] as const) {
      const refused = await run(['backup', ...args], folder)
      expect([refused.code, refused.out]).toEqual([code, ''])
      expect(refused.err).toContain(sentence)
      expect(refused.err).not.toContain('secret')
    }
    expect(readFileSync(join(folder, 'taken'), 'utf8')).toBe('taken')
    expect(readdirSync(folder).sort()).toEqual(['folder', 'gone-wal', 'link', 'plants.db', 'taken'])
    const server = serve(folder)
    await server.url
    expect((await run(['backup', 'plants.db'], folder)).err).toContain(
      'it is there already, and a process has it open; stop that process',
    )
    server.process.kill('SIGTERM')
    await server.finished
  }, 60_000)
})

describe('plants verify', () => {
  test('gives a store, its backup and its copy in a database the same checksum, and changes nothing', async () => {
    const folder = await folderWith(3000)
    await fill(`sqlite:${folder}/plants.db`, 'ä "b"', [plant(-(2n ** 63n)), plant(2n ** 63n - 1n)])
    const database = await (await sharedPostgres()).createDatabase(`verify_${process.pid}`)
    await prepare(database)
    const store = await verified(folder, 'plants.db')
    expect(store).toMatch(/^3002 plants of 2 accounts, and 2 tokens\. SHA-256: [0-9a-f]{64}$/)
    for (const command of [
      ['backup', 'copy.db'],
      ['copy', '--from', 'sqlite:plants.db', '--to', database],
    ])
      expect((await run(command, folder)).code).toBe(0)
    const before = ['copy.db', 'plants.db'].map((name) => readFileSync(join(folder, name)))
    chmodSync(join(folder, 'copy.db'), 0o400)
    expect(await verified(folder, 'copy.db')).toBe(store)
    expect(await verified(folder, `sqlite:${folder}/plants.db`)).toBe(store)
    expect(await verified(folder, database)).toBe(store)
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'plants.db'])
    for (const [n, name] of ['copy.db', 'plants.db'].entries())
      expect(readFileSync(join(folder, name)).equals(before[n] as Buffer)).toBe(true)
    await fill(`sqlite:${folder}/plants.db`, 'a', [plant(1_000_000)])
    expect(await verified(folder, 'plants.db')).not.toBe(store)
  }, 60_000)

  test('reads a store at one moment while a server writes to it', async () => {
    const folder = await folderWith(5000)
    const token = await tokenFor('b', folder)
    const server = serve(folder)
    const { acknowledged, stop } = writing(await server.url, token)
    await until('some are acknowledged', () => acknowledged.length > 300)
    for (let time = 0; time < 5; time += 1) {
      const least = 5000 + acknowledged.length
      expect(Number.parseInt(await verified(folder, 'plants.db'), 10)).toBeGreaterThanOrEqual(least)
    }
    await stop()
    server.process.kill('SIGKILL')
    await server.finished
    expect(await verified(folder, 'plants.db')).toStartWith(`${5000 + acknowledged.length} plants`)
  }, 60_000)

  /** Changes a backup of 3000 plants and two tokens behind SQLite's back, or by it. */
  const damages: readonly [what: string, damage: (path: string) => void, sentence: string][] = [
    ['a page of a tree', inBytes((bytes) => bytes.fill(0xaa, 300 * 4096, 301 * 4096)), 'damaged'],
    [
      'the version in its header',
      inBytes((bytes) => bytes.fill(0x43, 18, 19)),
      'its header names an unknown version',
    ],
    ['half of it', (path) => truncateSync(path, 400 * 4096), 'damaged'],
    [
      'the order of keys',
      inBytes((bytes) => bytes.write('0', bytes.lastIndexOf('an-in-order'))),
      'it is damaged (',
    ],
    [
      'a long text',
      inSql('pragma writable_schema = on; delete from long_texts where number = 7'),
      'it holds 2999 long texts, for which 3000 plants ask',
    ],
    [
      'a plant of a long text',
      inSql('drop trigger long_text_goes_with_its_plant; delete from plants where id = 7'),
      'it holds 3000 long texts, for which 2999 plants ask',
    ],
    [
      'a token',
      inSql('delete from tokens'),
      'The store holds 3001 plants, but the accounts of its tokens have 0',
    ],
    ['a table', inSql('drop table tokens'), 'no such table: tokens'],
  ]

  test.each(damages)('finds that %s is lost or wrong', async (_what, damage, sentence) => {
    const folder = await folderWith(3000)
    await fill(`sqlite:${folder}/plants.db`, 'an-in-order', [plant(1)])
    expect((await run(['backup', 'copy.db'], folder)).code).toBe(0)
    damage(join(folder, 'copy.db'))
    const { code, out, err } = await run(['verify', 'copy.db'], folder)
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(sentence)
    expect(err).not.toContain('defect')
  })

  test('says so if another process opens the file meanwhile', async () => {
    const folder = await folderWith(10)
    const path = join(folder, 'plants.db')
    const verified = verifyStore(locationOf(`sqlite:${path}`), {
      ...storeOptions,
      progress: () => writeFileSync(`${path}-wal`, ''),
      signal: new AbortController().signal,
    })
    await expect(verified).rejects.toThrow('another process has opened it meanwhile')
  })

  test('shows by the checksum what no check finds: another letter in a name', async () => {
    const folder = await folderWith(10, 100)
    await fill(`sqlite:${folder}/plants.db`, 'b', [plant(1, { name: 'Monstera' })])
    expect((await run(['backup', 'copy.db'], folder)).code).toBe(0)
    inBytes((bytes) => bytes.write('L', bytes.indexOf('Monstera')))(join(folder, 'copy.db'))
    const [one, other] = [await verified(folder, 'copy.db'), await verified(folder, 'plants.db')]
    expect(one.slice(0, 40)).toBe(other.slice(0, 40))
    expect(one).not.toBe(other)
  })

  test('refuses with a sentence what is no store', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'empty'), '')
    writeFileSync(
      join(folder, 'text'),
      'no database, but long enough to look like one\n'.repeat(100),
    )
    inSql('create table theirs (x)')(join(folder, 'theirs'))
    inSql('pragma application_id = 0x706c616e; pragma user_version = 99')(join(folder, 'newer'))
    for (const [place, code, sentence] of [
      ['none', 1, `The store ${folder}/none cannot be used: there is no such file.`],
      ['.', 1, 'it is not a regular file.'],
      ['empty', 1, 'it is empty, no store was made in it yet.'],
      ['text', 1, 'the file is not a database;'],
      ['theirs', 1, 'it is a database of another program;'],
      ['newer', 1, 'it was written by a newer version of plants (schema 99'],
      ['postgres://u:secret@127.0.0.1:1/x', 1, '127.0.0.1:1 refuses connections'],
      ['postgres://u:secret@127.0.0.1:1/x?no=1', 2, 'FILE|URL must be '],
      ['~/x.db', 2, '"~" has no meaning here'],
    ] as const) {
      const refused = await run(['verify', place], folder)
      expect([refused.code, refused.out]).toEqual([code, ''])
      expect(refused.err).toContain(sentence)
      expect(refused.err).not.toContain('secret')
    }
    expect(readdirSync(folder).sort()).toEqual(['empty', 'newer', 'text', 'theirs'])
  })
})

describe('plants restore', () => {
  test('brings back what a backup beside a busy server held, and the server goes on with it', async () => {
    const folder = await folderWith(5000)
    const token = await tokenFor('b', folder)
    const server = serve(folder)
    const { acknowledged, stop } = writing(await server.url, token)
    await until('some are acknowledged', () => acknowledged.length > 300)
    const before = [...acknowledged]
    expect((await run(['backup', 'copy.db'], folder)).code).toBe(0)
    const inUse = await run(['restore', 'copy.db'], folder)
    expect([inUse.code, inUse.out]).toEqual([1, ''])
    expect(inUse.err).toContain(
      `${folder}/plants.db cannot be made from ${folder}/copy.db: it is there already, and a process has it open; stop that process`,
    )
    await stop()
    server.process.kill('SIGTERM')
    await server.finished
    renameSync(join(folder, 'plants.db'), join(folder, 'old.db'))

    const { code, out } = await run(['restore', 'copy.db'], folder)
    expect(code).toBe(0)
    expect(out).toMatch(
      /^sqlite:\S+\/plants\.db is restored from \S+\/copy\.db: \d+ plants of 2 accounts, and 2 tokens\. SHA-256: [0-9a-f]{64}\n$/,
    )
    expect(statSync(join(folder, 'plants.db')).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'old.db', 'plants.db'])
    const [copied, restored] = [
      await verified(folder, 'copy.db'),
      await verified(folder, 'plants.db'),
    ]
    expect(restored).toBe(copied)
    expect(out).toEndWith(`${copied}\n`)
    const held = new Set(await idsOf(join(folder, 'copy.db'), 'b'))
    expect(before.filter((id) => !held.has(id))).toEqual([])

    const again = serve(folder)
    const url = await again.url
    const { json } = await call(url, 'GET', '/plants', { token })
    expect(json).toHaveLength(held.size)
    const body = '{"id":-1,"name":"new"}'
    expect((await call(url, 'POST', '/plants', { token, body })).status).toBe(200)
    again.process.kill('SIGTERM')
    expect((await again.finished).code).toBe(0)
  }, 60_000)

  test('takes a file of SQLite with a log beside it for what both hold together', async () => {
    const folder = await folderWith(100)
    const server = serve(folder)
    const url = await server.url
    const token = await tokenFor('b', folder)
    expect(
      (await call(url, 'POST', '/plants', { token, body: '{"id":1,"name":"x"}' })).status,
    ).toBe(200)
    server.process.kill('SIGKILL')
    await server.finished
    expect((await run(['restore', 'plants.db', '--store', 'sqlite:new.db'], folder)).out).toContain(
      ': 101 plants of 2 accounts, and 2 tokens.',
    )
  })

  test.each([
    ['SIGKILL', null],
    ['SIGINT', 130],
  ] as const)(
    'that %s interrupts puts nothing in the place of the store',
    async (signal, exitCode) => {
      const folder = await folderWith(40_000)
      const restore = start(['restore', 'plants.db', '--store', 'sqlite:new.db'], folder)
      const making = (): string[] => readdirSync(folder).filter((name) => /^new\.db/.test(name))
      await until('the copy is being made', () => making().length > 0)
      restore.process.kill(signal)
      const { code, out } = await restore.finished
      expect([code, out]).toEqual([exitCode, ''])
      expect(making().length).toBe(signal === 'SIGKILL' ? 1 : 0)
      expect(making()).not.toContain('new.db')
      const again = await run(['restore', 'plants.db', '--store', 'sqlite:new.db'], folder)
      expect(again.out).toContain(': 40000 plants of 1 account, and 1 token.')
    },
    60_000,
  )

  test.skipIf(!mayMount())('on a full disk says so and leaves nothing', async () => {
    const folder = await folderWith(1000)
    const disk = join(folder, 'disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
    try {
      const { code, err } = await run(
        ['restore', 'plants.db', '--store', 'sqlite:disk/new.db'],
        folder,
      )
      expect(code).toBe(1)
      expect(err).toContain(
        `${disk}/new.db cannot be made from ${folder}/plants.db: the disk is full.`,
      )
      expect(readdirSync(disk)).toEqual([])
    } finally {
      execFileSync('umount', [disk])
    }
  })

  test('refuses with a sentence what it cannot do, and overwrites nothing', async () => {
    const folder = await folderWith(100)
    expect((await run(['backup', 'copy.db'], folder)).code).toBe(0)
    writeFileSync(join(folder, 'gone.db-wal'), '')
    writeFileSync(join(folder, 'damaged'), readFileSync(join(folder, 'copy.db')))
    inBytes((bytes) => bytes.fill(0xaa, 30 * 4096, 31 * 4096))(join(folder, 'damaged'))
    writeFileSync(join(folder, 'lost'), readFileSync(join(folder, 'copy.db')))
    inSql('delete from tokens')(join(folder, 'lost'))
    inSql('create table theirs (x)')(join(folder, 'theirs'))
    const names = readdirSync(folder).sort()
    const before = readFileSync(join(folder, 'plants.db'))
    for (const [args, code, sentence] of [
      [['copy.db'], 1, 'plants.db cannot be made from '],
      [
        ['copy.db', '--store', 'sqlite:gone.db'],
        1,
        'the file is missing, but its log (gone.db-wal)',
      ],
      [['damaged', '--store', 'sqlite:new.db'], 1, 'damaged'],
      [['lost', '--store', 'sqlite:new.db'], 1, 'The store holds 100 plants, but the accounts'],
      [['theirs', '--store', 'sqlite:new.db'], 1, 'it is a database of another program;'],
      [['none', '--store', 'sqlite:new.db'], 1, `${folder}/none cannot be used: there is no such`],
      [['copy.db', '--store', 'sqlite:no/new.db'], 1, 'its folder does not exist; make it first.'],
      [['copy.db', '--store', 'postgres://u:secret@h/d'], 2, '--store must be sqlite:FILE, not '],
      [[], 2, 'FILE is missing.'],
    ] as const) {
      const refused = await run(['restore', ...args], folder)
      expect([refused.code, refused.out]).toEqual([code, ''])
      expect(refused.err).toContain(sentence)
      expect(refused.err).not.toContain('secret')
    }
    expect(readdirSync(folder).sort()).toEqual(names)
    expect(readFileSync(join(folder, 'plants.db')).equals(before)).toBe(true)
  }, 60_000)
})

function inBytes(change: (bytes: Buffer) => void): (path: string) => void {
  return (path) => {
    const bytes = readFileSync(path)
    change(bytes)
    writeFileSync(path, bytes)
  }
}

function inSql(sql: string): (path: string) => void {
  return (path) => {
    const database = new DatabaseSync(path)
    database.exec(sql)
    database.close()
  }
}
