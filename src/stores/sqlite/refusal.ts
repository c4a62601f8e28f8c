// Why a file cannot be used, in one sentence for the operator.
import { statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { storeRefused, Unusable } from '../failures.ts'
import type { SqliteLocation } from './location.ts'

/** The sentence for an error of the file or of the driver; `undone` as in `storeRefused`. */
export function sqliteRefusal(
  { path }: Pick<SqliteLocation, 'path'>,
  error: unknown,
  undone?: string,
): Error {
  const { errcode = 0, code = '' } = error as { errcode?: number; code?: string }
  const primary = errcode & 0xff
  const reason =
    error instanceof Unusable
      ? error.message
      : (systemReasons[code] ??
        reasons[primary === 10 && isFull(path) ? 13 : primary] ??
        (error instanceof Error ? error.message : String(error)))
  // As much of a name that is too long as tells which one it is.
  const end = [...path].slice(-40).join('')
  const name = code === 'ENAMETOOLONG' && end !== path ? `…${end}` : path
  return storeRefused(name, reason, error, undone)
}

/**
 * SQLite reports a full disk as a failed write if it meets it in the index of its log, which takes
 * 32 KiB. Twice as much free space is as good as none.
 */
function isFull(path: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(resolve(path)))
  return bavail * bsize < 64 * 1024
}

/**
 * SQLite's primary result codes (https://sqlite.org/rescode.html) that an operator can do something
 * about.
 */
const reasons: Readonly<Record<number, string>> = {
  5: 'another process holds its write lock',
  8: 'it cannot be written to',
  10: 'the disk failed to read or write it',
  11: 'the file is damaged; restore it from a backup',
  13: 'the disk is full',
  14: 'it cannot be opened; check that its folder exists and is writable',
  26: 'the file is not a database; name another file, or restore a backup',
}

const systemReasons: Readonly<Record<string, string>> = {
  EACCES: 'permission is denied',
  ELOOP: 'its symbolic links lead in a circle; name the file itself',
  EMFILE: 'too many files are open',
  ENAMETOOLONG: 'its name is too long; choose a shorter one',
  ENOENT: 'its folder does not exist; make it first',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  EPERM: 'permission is denied',
  EROFS: 'its file system is mounted read-only; mount it writable, or name another file',
}
