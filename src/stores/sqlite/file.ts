// The file of a store: made whole and for its owner alone, usable by this user, and in its place as long as it is in use.
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
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { connect } from './connection.ts'
import { ForeignDatabase, migrate } from './schema.ts'

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

/**
 * Watches that a store's file and its log stay in their place. What is committed into a file that was removed or
 * replaced is lost with the process, so it must not be acknowledged. Tells what happened, or undefined if all is well.
 */
export function watchPlace(path: string): () => string | undefined {
  const file = resolve(path)
  const log = `${file}-wal`
  const fileIdentity = identityOf(file)
  let logIdentity: string | undefined
  return () => {
    const foundLog = identityOf(log)
    logIdentity ??= foundLog
    const lost = [...(identityOf(file) === fileIdentity ? [] : [file]), ...(foundLog === logIdentity ? [] : [log])]
    if (lost.length === 0) return undefined
    return `${lost.join(' and ')} was removed or replaced while in use; put it back as it was. If it is gone, lists still show what it held until the service stops: save that, then restore a backup and start again`
  }
}

/** Device and inode: what a file is, whatever its name. */
function identityOf(file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`
}
