// The file of a store: made whole, kept private, refused with a reason, and watched while in use.
import { afterAll, describe, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '../../../src/clock.ts'
import type { KeptPlant } from '../../../src/domain/plant.ts'
import type { Store } from '../../../src/domain/store.ts'
import { connect } from '../../../src/stores/sqlite/connection.ts'
import { ManualClock } from '../../support/clock.ts'
import { mayMount } from '../../support/operatingSystem.ts'
import { temporaryFolder } from '../../support/service.ts'
import { openFile } from '../../support/stores.ts'

const folder = temporaryFolder()
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function newPath(): string {
  files += 1
  return `${folder}/${files}.db`
}

async function refusalOf(path: string, use: 'create' | 'existing' = 'create'): Promise<string> {
  try {
    await (await openFile(path, { use })).close()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it was opened')
}

describe('the file of an embedded store', () => {
  test('is readable by its owner alone, as is its log', async () => {
    const path = newPath()
    const store = await openFile(path)
    await store.plants.create('a', { id: 1n, name: 'x', tag: null, idempotencyKey: null })
    for (const file of [path, `${path}-wal`, `${path}-shm`])
      expect(statSync(file).mode & 0o777).toBe(0o600)
    await store.close()
    expect(existsSync(`${path}-wal`)).toBe(false)
  })

  test('is in WAL mode, with tables that check their types', async () => {
    const path = newPath()
    await (await openFile(path)).close()
    const database = new DatabaseSync(path)
    expect(database.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
    expect(() =>
      database.exec("insert into plants values ('a', 'one', 'x', null, null, null)"),
    ).toThrow('cannot store TEXT')
    database.close()
  })

  test('holds no token, only its hash', async () => {
    const path = newPath()
    const store = await openFile(path)
    const { issueToken } = await import('../../../src/domain/access.ts')
    const { randomBytes } = await import('node:crypto')
    const { plain } = await issueToken(
      store.tokens,
      { account: 'a', label: '', scopes: ['plants:read'], lifetimeMs: null },
      Date.now(),
      randomBytes,
    )
    await store.close()
    const bytes = readFileSync(path)
    expect(bytes.includes(plain.reveal())).toBe(false)
    expect(bytes.includes(plain.reveal().slice(7, 50))).toBe(false)
    expect(bytes.includes(Buffer.from(plain.hash()))).toBe(true)
  })
})

describe('opening', () => {
  test('makes no file by itself', async () => {
    const path = newPath()
    await expect(connect(path, systemClock)).rejects.toThrow('unable to open')
    expect(existsSync(path)).toBe(false)
  })

  test('by many at once, if there is no file yet, works for all', async () => {
    const path = newPath()
    const stores = await Promise.all(Array.from({ length: 8 }, () => openFile(path)))
    expect(readdirSync(folder).filter((name) => name.includes('making'))).toEqual([])
    for (const [n, store] of stores.entries())
      await store.plants.create('a', { id: BigInt(n), name: 'x', tag: null, idempotencyKey: null })
    expect((await stores[0]?.plants.list('a', { limit: 10 }))?.plants).toHaveLength(8)
    for (const store of stores) await store.close()
  })

  test('says once that it made a file, and nothing of one that is there', async () => {
    const path = newPath()
    const notes: string[] = []
    const open = (): Promise<Store> => openFile(path, { note: (message) => notes.push(message) })
    for (const store of await Promise.all([open(), open(), open()])) await store.close()
    await (await open()).close()
    expect(notes).toEqual([`made a new store: ${path}`])
  })

  test('makes the file that a symbolic link names', async () => {
    const path = newPath()
    symlinkSync(`${path}-target`, path)
    await (await openFile(path)).close()
    expect(statSync(`${path}-target`).mode & 0o777).toBe(0o600)
    rmSync(`${path}-target`)
    writeFileSync(`${path}-target-wal`, '')
    expect(await refusalOf(path)).toContain('the file is missing, but its log')
    expect(existsSync(path)).toBe(false)
  })

  test('takes a name that looks like a URI for a name', async () => {
    const name = 'file:memory.db?mode=memory'
    const home = process.cwd()
    process.chdir(folder)
    try {
      const store = await openFile(name)
      await store.plants.create('a', { id: 1n, name: 'x', tag: null, idempotencyKey: null })
      await store.close()
      expect(statSync(name).mode & 0o777).toBe(0o600)
      const again = await openFile(name, { use: 'existing' })
      expect((await again.plants.list('a', { limit: 1 })).plants).toHaveLength(1)
      await again.close()
    } finally {
      process.chdir(home)
    }
  })
})

describe('a file that cannot be a store is refused with one sentence', () => {
  test('if its folder does not exist', async () => {
    expect(await refusalOf(`${folder}/none/x.db`)).toBe(
      `The store ${folder}/none/x.db cannot be used: its folder does not exist; make it first.`,
    )
  })

  test.skipIf(process.platform !== 'linux')('if its folder takes no files', async () => {
    expect(await refusalOf('/proc/x.db')).toBe(
      'The store /proc/x.db cannot be used: its folder /proc takes no files; name a file in another one.',
    )
  })

  test.each([
    ['n', 300],
    ['n', 250],
    ['ü', 150],
  ])(
    'if its name is too long, which is not shown whole: %s, %i times',
    async (character, times) => {
      expect(await refusalOf(`${folder}/${character.repeat(times)}`)).toBe(
        `The store …${character.repeat(40)} cannot be used: its name is too long; choose a shorter one.`,
      )
    },
  )

  test('if its symbolic links lead in a circle', async () => {
    const path = newPath()
    symlinkSync(path, path)
    expect(await refusalOf(path)).toBe(
      `The store ${path} cannot be used: its symbolic links lead in a circle; name the file itself.`,
    )
    expect(readdirSync(folder).filter((name) => name.includes('making'))).toEqual([])
  })

  test('if it is a folder', async () => {
    mkdirSync(`${folder}/folder.db`)
    expect(await refusalOf(`${folder}/folder.db`)).toBe(
      `The store ${folder}/folder.db cannot be used: it is a folder; name a file in it, such as sqlite:${folder}/folder.db/plants.db.`,
    )
    expect(readdirSync(`${folder}/folder.db`)).toEqual([])
  })

  test('if it is no file at all', async () => {
    expect(await refusalOf('/dev/null')).toBe(
      'The store /dev/null cannot be used: it is not a regular file.',
    )
  })

  test.each(['plants', 'tokens'])('if its table %s is damaged', async (table) => {
    const path = newPath()
    await (await openFile(path)).close()
    const database = new DatabaseSync(path)
    const { page } = database
      .prepare('select rootpage as page from sqlite_schema where name = ?')
      .get(table) as { page: number }
    database.close()
    const bytes = readFileSync(path)
    bytes.fill(0xaa, (page - 1) * 4096, page * 4096)
    writeFileSync(path, bytes)
    expect(await refusalOf(path)).toBe(
      `The store ${path} cannot be used: the file is damaged; restore it from a backup.`,
    )
    expect(readFileSync(path).equals(bytes)).toBe(true)
  })

  test.each(['-wal', '-shm', '-journal'])('if it is gone and its %s is left', async (ending) => {
    const path = newPath()
    writeFileSync(path + ending, '')
    for (const use of ['create', 'existing'] as const)
      expect(await refusalOf(path, use)).toBe(
        `The store ${path} cannot be used: the file is missing, but its log (${basename(path)}${ending}) is there, so it was removed or moved while it was in use; stop the service if it runs, and put that very file back, or remove ${path}${ending} and begin with a backup or an empty store.`,
      )
    expect(existsSync(path)).toBe(false)
  })

  test('if it is no database', async () => {
    const path = newPath()
    writeFileSync(
      path,
      'not a database, but long enough to look like a file of some kind\n'.repeat(100),
    )
    expect(await refusalOf(path)).toBe(
      `The store ${path} cannot be used: the file is not a database; name another file, or restore a backup.`,
    )
    expect(readFileSync(path, 'utf8')).toStartWith('not a database')
  })

  test('if it is a database of another program, which stays as it is', async () => {
    const path = newPath()
    const database = new DatabaseSync(path)
    database.exec('create table theirs (x)')
    database.close()
    const before = readFileSync(path)
    expect(await refusalOf(path)).toBe(
      `The store ${path} cannot be used: it is a database of another program; name another file.`,
    )
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('if a newer version wrote it', async () => {
    const path = newPath()
    await (await openFile(path)).close()
    const database = new DatabaseSync(path)
    database.exec('pragma user_version = 99')
    database.close()
    const before = readFileSync(path)
    expect(await refusalOf(path)).toContain(
      'it was written by a newer version of plants (schema 99',
    )
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  test('if it is not there and may not be made', async () => {
    const path = newPath()
    expect(await refusalOf(path, 'existing')).toBe(
      `The store ${path} cannot be used: there is no such file.`,
    )
    expect(existsSync(path)).toBe(false)
  })

  test.skipIf(process.getuid?.() !== 0)(
    'if its rights, or those of its log or folder, keep this user out',
    async () => {
      const home = `${folder}/of-another-user`
      mkdirSync(`${home}/closed`, { recursive: true })
      chmodSync(folder, 0o755)
      chmodSync(home, 0o777)
      for (const name of ['file.db', 'read-only.db', 'log.db', 'closed/file.db'])
        await (await openFile(`${home}/${name}`)).close()
      for (const name of ['log.db', 'closed/file.db']) chmodSync(`${home}/${name}`, 0o666)
      writeFileSync(`${home}/log.db-wal`, '', { mode: 0o600 })
      chownSync(`${home}/read-only.db`, nobody, nobody)
      chmodSync(`${home}/read-only.db`, 0o400)
      const sentence = (store: string, what: string, mode: string, owner = 0): string =>
        `The store ${home}/${store} cannot be used: this user may not read and write ${home}/${what} (owner ${owner}, mode ${mode}); run plants as its owner, or give this user the right.`
      for (const [store, expected] of [
        ['file.db', sentence('file.db', 'file.db', '600')],
        ['read-only.db', sentence('read-only.db', 'read-only.db', '400', nobody)],
        ['log.db', sentence('log.db', 'log.db-wal', '600')],
        ['closed/file.db', sentence('closed/file.db', 'closed', '755')],
        ['closed/new.db', sentence('closed/new.db', 'closed', '755')],
      ] as const)
        expect(await asNobody(`${home}/${store}`)).toBe(expected)
      expect(readdirSync(`${home}/closed`)).toEqual(['file.db'])
    },
  )

  test.skipIf(!mayMount())('if its file system is read-only', async () => {
    const disk = `${folder}/read-only`
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
    try {
      await (await openFile(`${disk}/x.db`)).close()
      execFileSync('mount', ['-o', 'remount,ro', disk])
      for (const name of ['x.db', 'new.db'])
        expect(await refusalOf(`${disk}/${name}`)).toBe(
          `The store ${disk}/${name} cannot be used: its file system is mounted read-only; mount it writable, or name another file.`,
        )
    } finally {
      execFileSync('umount', [disk])
    }
  })

  test.skipIf(!mayMount()).each([4, 8, 16, 40, 64])(
    'if the disk of %i KiB is full, and leaves nothing behind',
    async (size) => {
      const disk = `${folder}/disk-${size}`
      mkdirSync(disk)
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}k`, 'tmpfs', disk])
      try {
        expect(await refusalOf(`${disk}/x.db`)).toBe(
          `The store ${disk}/x.db cannot be used: the disk is full.`,
        )
        expect(readdirSync(disk)).toEqual([])
      } finally {
        execFileSync('umount', [disk])
      }
    },
  )
})

/** Resolves once the store has recovered by itself, a second after what failed. */
async function recovered(store: Store, clock: ManualClock): Promise<void> {
  await clock.advance(1000)
  // A write that changes nothing waits for the commit that the store tries by itself.
  await store.tokens.noteUse('no token', 0)
  await store.ready()
}

describe('a file that leaves its place while the store is open', () => {
  const plant = (id: bigint): KeptPlant => ({
    id,
    name: `plant ${id}`,
    tag: null,
    idempotencyKey: null,
  })

  /**
   * Creates until one fails; answers the ids that were acknowledged and the failures of the next
   * ones.
   */
  async function createsOn(
    store: Store,
    from: bigint,
  ): Promise<{ acknowledged: bigint[]; refusals: unknown[] }> {
    const acknowledged: bigint[] = []
    const refusals: unknown[] = []
    for (let id = from; id < from + 5n; id += 1n) {
      await store.plants.create('a', plant(id)).then(
        () => acknowledged.push(id),
        (error) => refusals.push(error),
      )
    }
    return { acknowledged, refusals }
  }

  /** A store by a name that is a symbolic link to another one, which leads to the file `real`. */
  function linkedPath(): { path: string; real: string } {
    const path = newPath()
    const real = `${path}-data/real.db`
    mkdirSync(`${path}-data`)
    symlinkSync(`${basename(path)}-second`, path)
    symlinkSync(`${basename(path)}-data/real.db`, `${path}-second`)
    return { path, real }
  }

  function plainPath(): { path: string; real: string } {
    const path = newPath()
    return { path, real: path }
  }

  const moveAway = (file: string): void => renameSync(file, `${file}.moved`)
  const replace = (file: string): void => {
    moveAway(file)
    writeFileSync(file, 'another')
  }
  const loop = (file: string): void => {
    moveAway(file)
    symlinkSync(file, file)
  }

  test.each([
    ['it is moved away', plainPath, '', moveAway],
    ['it is replaced by another', plainPath, '', replace],
    ['it is replaced by a link to itself', plainPath, '', loop],
    ['it loses its log', plainPath, '-wal', moveAway],
    ['its log is replaced by another', plainPath, '-wal', replace],
    ['it loses the index of its log', plainPath, '-shm', moveAway],
    ['links lead to it and it is moved away', linkedPath, '', moveAway],
    ['links lead to it and it loses its log', linkedPath, '-wal', moveAway],
    ['links lead to it and it loses the index of its log', linkedPath, '-shm', moveAway],
  ])(
    'takes no write any more when %s, and takes them again when it is back',
    async (_what, make, ending, lose) => {
      const { path, real } = make()
      const clock = new ManualClock()
      const store = await openFile(path, { clock })
      await store.plants.create('a', plant(1n))
      const file = real + ending
      lose(file)
      const { acknowledged, refusals } = await createsOn(store, 10n)
      expect(acknowledged).toEqual([])
      // The first was written before the loss was seen, the others were not.
      expect(refusals[0]).toMatchObject({ refusal: 'outcome-unknown' })
      for (const refusal of refusals.slice(1))
        expect(refusal).toMatchObject({ refusal: 'store-unavailable' })
      expect(String((refusals[0] as Error).cause)).toContain(file)
      expect(String((refusals[0] as Error).cause)).toContain(
        'was removed or replaced while in use; put it back as it was.',
      )
      await expect(store.ready()).rejects.toMatchObject({ refusal: 'store-unavailable' })
      renameSync(`${file}.moved`, file)
      await recovered(store, clock)
      expect((await createsOn(store, 20n)).acknowledged).toHaveLength(5)
      await store.close()
      const again = await openFile(path, { use: 'existing' })
      const ids = (await again.plants.list('a', { limit: 20 })).plants.map(({ id }) => id)
      // What became of 10 was said to be unknown.
      expect(ids.filter((id) => id !== 10n)).toEqual([1n, 20n, 21n, 22n, 23n, 24n])
      await again.close()
    },
  )

  test.each(['real file', 'link'])(
    'takes no write when its %s is moved and the link follows it to another name',
    async (what) => {
      const { path, real } = linkedPath()
      const store = await openFile(path)
      await store.plants.create('a', plant(1n))
      renameSync(what === 'link' ? path : real, `${real}.moved`)
      if (what === 'real file') rmSync(path)
      symlinkSync(
        what === 'link' ? real : `${real}.moved`,
        what === 'link' ? `${path}.other` : path,
      )
      expect((await createsOn(store, 10n)).acknowledged).toEqual([])
      await store.close()
    },
  )

  test('is not made again by the start that follows, though several links lead to where it was', async () => {
    const { path, real } = linkedPath()
    const store = await openFile(path)
    await store.plants.create('a', plant(1n))
    renameSync(real, `${real}.moved`)
    await store.close()
    expect(await refusalOf(path)).toContain(
      'the file is missing, but its log (real.db-wal, real.db-shm) is there',
    )
    expect(existsSync(real)).toBe(false)
  })

  test('closes without an error if it became a link to itself', async () => {
    const { path } = plainPath()
    const store = await openFile(path)
    await store.plants.create('a', plant(1n))
    loop(path)
    expect((await createsOn(store, 10n)).acknowledged).toEqual([])
    await store.close()
    expect(existsSync(`${path}-wal`)).toBe(true)
  })

  test('leaves its log behind when it closes, and the next start says what is missing rather than make a new store', async () => {
    const path = newPath()
    const store = await openFile(path)
    await store.plants.create('a', plant(1n))
    rmSync(path)
    expect((await createsOn(store, 10n)).acknowledged).toEqual([])
    await store.close()
    expect(await refusalOf(path)).toContain('the file is missing, but its log')
    expect(existsSync(path)).toBe(false)
  })

  test('does not take the log of the file that replaced it along when it closes', async () => {
    const path = newPath()
    const store = await openFile(path)
    await store.plants.create('a', plant(1n))
    for (const file of [path, `${path}-wal`, `${path}-shm`]) rmSync(file)
    const next = await openFile(path)
    await next.plants.create('a', plant(2n))
    expect((await createsOn(store, 10n)).acknowledged).toEqual([])
    await store.close()
    expect(existsSync(`${path}-wal`)).toBe(true)
    expect((await createsOn(next, 30n)).acknowledged).toHaveLength(5)
    await next.close()
  })
})

describe.skipIf(!mayMount())('a disk that fills up while the store is open', () => {
  test('refuses writes as not done, keeps what was acknowledged, and recovers', async () => {
    const disk = `${folder}/filling`
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk])
    const clock = new ManualClock()
    const store = await openFile(`${disk}/x.db`, { clock })
    try {
      const acknowledged: bigint[] = []
      let failure: unknown
      for (let id = 0n; id < 100n && failure === undefined; id += 1n) {
        await store.plants
          .create('a', { id, name: 'n'.repeat(100_000), tag: null, idempotencyKey: null })
          .then(
            () => acknowledged.push(id),
            (error) => {
              failure = error
            },
          )
      }
      expect(failure).toMatchObject({ refusal: 'store-unavailable' })
      expect((await store.plants.list('a', { limit: 1000 })).plants.map(({ id }) => id)).toEqual(
        acknowledged,
      )
      // The last bytes too; then small writes fail as soon as the log has used up what it was given
      // before.
      expect(() =>
        execFileSync('dd', ['if=/dev/zero', `of=${disk}/rest`, 'bs=1k'], { stdio: 'ignore' }),
      ).toThrow()
      for (let id = 1000n; id < 2000n && failure !== undefined; id += 1n) {
        await store.plants
          .create('b', { id, name: 'x', tag: null, idempotencyKey: null })
          .catch(() => {
            failure = undefined
          })
      }
      expect(failure).toBeUndefined()
      // No client's question changes that: asking commits nothing.
      for (let times = 0; times < 3; times += 1)
        await expect(store.ready()).rejects.toMatchObject({ refusal: 'store-unavailable' })
      execFileSync('mount', ['-o', 'remount,size=64m', disk])
      // Without any client that writes.
      await recovered(store, clock)
      expect(
        await store.plants.create('a', { id: 1000n, name: 'x', tag: null, idempotencyKey: null }),
      ).toBeUndefined()
    } finally {
      await store.close()
      execFileSync('umount', [disk])
    }
  }, 30_000)
})

const nobody = 65_534

/** Opens a store in a process of another user, which owns nothing; answers the refusal. */
async function asNobody(path: string): Promise<string> {
  const src = `${import.meta.dir}/../../../src`
  const script = `const { openSqliteStore } = await import('${src}/stores/sqlite/store.ts')
    const { systemClock: clock } = await import('${src}/clock.ts')
    process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody})
    const options = { use: 'create', clock, note: () => {}, warn: () => {} }
    await openSqliteStore({ scheme: 'sqlite', path: process.argv.at(-1) }, options).then(() => console.log('opened'), (error) => console.log(error.message))
    process.exit()`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', script, path])
  return stdout.toString().trim()
}
