// Opening the database file: for its owner alone, in WAL mode, synced at every commit. What keeps it
// from being opened becomes one sentence for the operator.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../storeRefused.ts'
import { ForeignDatabase, migrate, refuseForeign } from './schema.ts'

/** How long a statement waits for another process that holds the file's write lock. */
const lockWaitMs = 10_000
const lockRetryMs = 10

/**
 * A connection to an existing file. synchronous = full makes every commit wait until the log is on
 * the disk: with less, SQLite would acknowledge writes that a power cut takes back.
 */
export function connect(path: string): DatabaseSync {
  // SQLite takes a relative path that begins with "file:" for a URI, and its options with it.
  const database = new DatabaseSync(resolve(path), { timeout: lockWaitMs })
  try {
    refuseForeign(database)
    readEachTable(database)
    whileLocked(() => database.exec('pragma journal_mode = wal'))
    database.exec('pragma synchronous = full; pragma trusted_schema = off')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Fails if the first page of a table is damaged: the start must find that, and not a client. */
function readEachTable(database: DatabaseSync): void {
  const tables = database.prepare("select name from sqlite_schema where type = 'table'").all()
  for (const { name } of tables) {
    const firstRow = database.prepare(`select * from "${name}" limit 1`)
    firstRow.setReadBigInts(true)
    firstRow.get()
  }
}

/** Does something with a connection, and closes it where that fails. */
export async function closingOnError<Value>(database: DatabaseSync, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    database.close()
    throw error
  }
}

/** Tries again while another process holds the lock: the switch to WAL does not wait for it by itself. */
function whileLocked(work: () => void): void {
  const endMs = performance.now() + lockWaitMs
  for (;;) {
    try {
      work()
      return
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== 5 || performance.now() > endMs) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockRetryMs)
    }
  }
}

export interface FileUse {
  /** Whether the file is made if there is none. */
  readonly create: boolean
  /** What to do if there is none, as the end of a sentence. */
  readonly ifMissing?: string
  /** Told of a file that was made. */
  readonly note?: (message: string) => void
}

/** Makes the file if there is none; throws if this user cannot use it. */
export function prepareFile(name: string, { create, ifMissing, note }: FileUse): void {
  const path = linkTarget(name)
  // They are looked for before the file itself, because another process may be making the store just now.
  const remains = logFiles(path).filter((file) => existsSync(file))
  if (existsSync(path)) {
    requireFile(path)
  } else if (remains.length > 0) {
    throw new ForeignDatabase(
      `the file is missing, but its log (${remains.map((file) => basename(file)).join(', ')}) is there, so it was removed or moved while it was in use; put that very file back, or remove ${remains.join(' and ')} and begin with a backup or an empty store`,
    )
  } else if (create) {
    if (makeFile(path)) note?.(`made a new store: ${path}`)
  } else {
    throw new ForeignDatabase(`there is no such file${ifMissing === undefined ? '' : `; ${ifMissing}`}`)
  }
}

/** The file that a symbolic link names, be it there or not; SQLite keeps the log beside that one. */
function linkTarget(path: string): string {
  try {
    return resolve(dirname(path), readlinkSync(path))
  } catch {
    return path
  }
}

/** What SQLite keeps beside a file while it is in use, and after a crash. */
function logFiles(path: string): readonly string[] {
  return ['-wal', '-shm', '-journal'].map((ending) => path + ending)
}

function requireFile(path: string): void {
  const found = statSync(path)
  if (found.isDirectory())
    throw new ForeignDatabase(`it is a folder; name a file in it, such as sqlite:${join(path, 'plants.db')}`)
  if (!found.isFile()) throw new ForeignDatabase('it is not a regular file')
  const file = realpathSync(path)
  for (const needed of [file, ...logFiles(file), dirname(file)]) requireRights(needed)
}

/** Throws if a file or folder is there and this user may not read and write it. */
function requireRights(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ENOENT') return
    if (code !== 'EACCES') throw error
    const { uid, mode } = statSync(path)
    throw new ForeignDatabase(
      `this user may not read and write ${path} (owner ${uid}, mode ${(mode & 0o777).toString(8)}); run plants as its owner, or give this user the right`,
    )
  }
}

/**
 * Makes an empty store, readable by its owner alone; SQLite gives its log the same mode. The store is made in a
 * folder of its own and gets its name once it is whole: a start that fails leaves no store behind, and if several
 * race, they agree on one. Answers whether it is this one's.
 */
function makeFile(path: string): boolean {
  requireRights(dirname(path))
  const folder = mkdtempSync(`${path}.making-`)
  try {
    const made = join(folder, basename(path))
    closeSync(openSync(made, 'a', 0o600))
    const database = connect(made)
    try {
      migrate(database)
      database.exec('pragma wal_checkpoint(truncate)')
    } finally {
      database.close()
    }
    return named(made, path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function named(made: string, path: string): boolean {
  try {
    linkSync(made, path)
    return true
  } catch {
    // Another was faster, or the file system knows no hard links: then an empty file will do.
    const isNew = !existsSync(path)
    closeSync(openSync(path, 'a', 0o600))
    return isNew
  }
}

/** SQLite's primary result codes (https://sqlite.org/rescode.html) that an operator can do something about. */
const reasons: Readonly<Record<number, string>> = {
  5: 'another process holds its write lock',
  8: 'it cannot be written to',
  10: 'the disk failed to read or write it',
  11: 'the file is damaged; restore it from a backup',
  13: 'the disk is full',
  14: 'it cannot be opened; check that its folder exists and is writable',
  26: 'the file is not a database',
}

const systemReasons: Readonly<Record<string, string>> = {
  EACCES: 'permission is denied',
  EMFILE: 'too many files are open',
  ENOENT: 'its folder does not exist; make it first',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  EPERM: 'permission is denied',
  EROFS: 'its file system is mounted read-only',
}

/** The sentence for whatever kept a file from being opened. */
export function refusal(path: string, error: unknown): StoreRefused {
  const { errcode, code } = error as { errcode?: number; code?: string }
  const primary = (errcode ?? 0) & 0xff
  const known =
    error instanceof ForeignDatabase
      ? error.message
      : (systemReasons[code ?? ''] ?? reasons[diskIsFull(path, primary) ? 13 : primary])
  const reason = known ?? (error instanceof Error ? error.message : String(error))
  return new StoreRefused(path, reason, error)
}

/** Less free space than this is as good as none: the log's index alone takes 32 KiB. */
const freeBytesMin = 64 * 1024

/** SQLite reports a full disk as a failed write where it meets it in the index of its log. */
function diskIsFull(path: string, primaryCode: number): boolean {
  if (primaryCode !== 10) return false
  const { bavail, bsize } = statfsSync(dirname(resolve(path)))
  return bavail * bsize < freeBytesMin
}
