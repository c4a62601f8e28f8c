// The file of a store: made whole and for its owner alone, usable by this user, and in its place as
// long as it is in use.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Clock } from '../../clock.ts'
import { Unusable } from '../failures.ts'
import type { StoreOptions } from '../location.ts'
import { connect, isInUse } from './connection.ts'
import { migrate } from './schema.ts'

/** Makes the file if there is none; rejects with Unusable if this user cannot use it. */
export async function prepareFile(
  name: string,
  { use, clock, note, ifMissing }: Pick<StoreOptions, 'use' | 'clock' | 'note' | 'ifMissing'>,
): Promise<void> {
  const path = followLinks(name)
  // They are looked for before the file itself, because another process may be making the store
  // just now.
  const remains = remainsOf(path)
  if (existsSync(path)) {
    const found = statSync(path)
    if (found.isDirectory())
      throw new Unusable(
        `it is a folder; name a file in it, such as sqlite:${join(path, 'plants.db')}`,
      )
    if (!found.isFile()) throw new Unusable('it is not a regular file')
    if (use === 'existing' && found.size === 0)
      throw new Unusable(`it is empty, no store was made in it yet; ${ifMissing}`)
    const file = realpathSync(path)
    for (const needed of [file, ...besides(file), dirname(file)]) requireRights(needed)
  } else if (remains.length > 0) {
    throw withoutFile(remains)
  } else if (use === 'create') {
    if (await makeFile(path, clock)) note(`made a new store: ${path}`)
  } else {
    throw new Unusable(`there is no such file${ifMissing === undefined ? '' : `; ${ifMissing}`}`)
  }
}

/** What SQLite keeps beside a file while it is in use, and after a crash. */
function besides(file: string): readonly string[] {
  return [...logNames(file), `${file}-journal`]
}

function remainsOf(path: string): readonly string[] {
  return besides(path).filter((file) => existsSync(file))
}

function withoutFile(remains: readonly string[]): Unusable {
  return new Unusable(
    `the file is missing, but its log (${remains.map((file) => basename(file)).join(', ')}) is there, so it was removed or moved while it was in use; stop the service if it runs, and put that very file back, or remove ${remains.join(' and ')} and begin with a backup or an empty store`,
  )
}

/** Throws if anything has this name, or if the log of a file of this name was left. */
export function requireAbsent(path: string): void {
  const remains = remainsOf(path)
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isFile() && isInUse(path))
    throw new Unusable(
      'it is there already, and a process has it open; stop that process and move the file away, or name another one',
    )
  if (found !== undefined)
    throw new Unusable(
      'it is there already, and nothing is ever overwritten; move it away, or name another file',
    )
  if (remains.length > 0) throw withoutFile(remains)
}

/**
 * Where symbolic links lead to, be a file there or not: SQLite keeps the log beside that one.
 */
export function followLinks(name: string): string {
  let path = name
  try {
    // Linux follows 40 links and gives up.
    for (let links = 0; links < 40; links += 1)
      path = resolve(realpathSync(dirname(path)), readlinkSync(path))
  } catch {}
  return path
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
    throw new Unusable(
      `this user may not read and write ${path} (owner ${uid}, mode ${(mode & 0o777).toString(8)}); run plants as its owner, or give this user the right`,
    )
  }
}

/**
 * Makes an empty store. If several starts race, they agree on one. Resolves to whether it is this
 * one's.
 */
async function makeFile(path: string, clock: Clock): Promise<boolean> {
  try {
    await makeWhole(path, async (made) => {
      const database = await connect(made, clock)
      try {
        migrate(database)
        database.exec('pragma wal_checkpoint(truncate)')
      } finally {
        database.close()
      }
    })
    return true
  } catch (error) {
    if (!(error instanceof Unnamed)) throw error
    // Another was faster, or the file system knows no hard links: then an empty file will do.
    const isNew = !existsSync(path)
    closeSync(openSync(path, 'a', 0o600))
    return isNew
  }
}

/** A file is whole, but could not get its name. */
class Unnamed extends Unusable {}

/**
 * Makes a file, readable by its owner alone; SQLite gives its log the same mode. It is filled in a
 * folder of its own and gets its name once it is whole and on the disk, so that work that fails
 * leaves nothing behind. Resolves to what `fill` does, or rejects as it does, or with Unnamed.
 */
export async function makeWhole<Value>(
  path: string,
  fill: (made: string) => Promise<Value>,
): Promise<Value> {
  requireRights(dirname(path))
  let folder: string
  try {
    folder = mkdtempSync(`${path}.making-`)
  } catch (error) {
    const parent = dirname(path)
    if ((error as { code?: string }).code !== 'ENOENT' || !existsSync(parent)) throw error
    throw new Unusable(`its folder ${parent} takes no files; name a file in another one`)
  }
  try {
    const made = join(folder, basename(path))
    closeSync(openSync(made, 'a', 0o600))
    const value = await fill(made)
    sync(made)
    try {
      linkSync(made, path)
    } catch (error) {
      const { code } = error as { code?: string }
      throw new Unnamed(
        code === 'EEXIST'
          ? 'another process has just made it'
          : `its file system knows no hard links (${code}); name a file on another one`,
      )
    }
    sync(dirname(path))
    return value
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Waits until a file, or the names in a folder, are on the disk. */
function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * How long a file may be in use without its log or the log's index: another process may be opening
 * or closing it just now.
 */
const logAwaitedMs = 3000

/**
 * Rejects if the file is in use, but its log or the log's index is gone, which another process has
 * open. SQLite would make new ones, and what the two processes write from then on would be lost to
 * one another. After a crash, and beside a copy, one of them may be missing as well, but then
 * nobody has the file open.
 */
export async function refuseLostLog(path: string, clock: Clock): Promise<void> {
  const logs = logNames(realpathSync(path))
  const endMs = clock.monotonicMs() + logAwaitedMs
  for (;;) {
    const missing = logs.filter((log) => !existsSync(log))
    if (missing.length === 0 || !isInUse(path)) return
    if (clock.monotonicMs() > endMs)
      throw new Unusable(
        `it is in use, but ${missing.join(' and ')} is missing, so that was removed while in use; stop the service that uses it, and try again`,
      )
    await clock.sleep(10)
  }
}

/** The files of an open store and what they are, as a thread can hand them to another. */
export type Place = readonly { readonly file: string; readonly identity: string | undefined }[]

/**
 * Remembers what a store's file is, by its name and by what symbolic links lead to. The file must
 * be there, and this must be asked before the file is opened.
 */
export function placeOfFile(path: string): Place {
  return placeOf([...new Set([resolve(path), realpathSync(path)])])
}

/**
 * Remembers what SQLite keeps beside the file: the log, and its index with the locks in it. They
 * are there from the first transaction until the last connection is closed. Their name comes from
 * the file that links lead to.
 */
export function placeOfLog(path: string): Place {
  return placeOf(logNames(realpathSync(path)))
}

/** Whether a file is in use, or was when its process died. */
export function hasLog(path: string): boolean {
  const [log = ''] = logNames(realpathSync(path))
  return existsSync(log)
}

/** The log and its index. */
function logNames(file: string): readonly string[] {
  return [`${file}-wal`, `${file}-shm`]
}

function placeOf(files: readonly string[]): Place {
  return files.map((file) => ({ file, identity: identityOf(file) }))
}

/**
 * Tells what happened to the files of an open store, or undefined if each is where it was. What is
 * committed into a file that was removed or replaced is lost with the process, so it must not be
 * acknowledged. Without its index, the log is written by each process as if the others were not
 * there.
 */
export function findLoss(place: Place): string | undefined {
  const lost = place.filter(
    ({ file, identity }) => identity === undefined || identityOf(file) !== identity,
  )
  if (lost.length === 0) return undefined
  return `${lost.map(({ file }) => file).join(' and ')} was removed or replaced while in use; put it back as it was. If it is gone, lists still show what it held until the service stops: save that, then restore a backup and start again`
}

/**
 * Device and inode: what a file is, whatever its name. Undefined if it cannot be reached, for
 * whatever reason.
 */
function identityOf(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file)
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
