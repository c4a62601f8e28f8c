// Whether a file is a whole store. It is read as it is and not changed.
import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import { Failure } from '../../domain/failure.ts'
import { Refused } from '../../refused.ts'
import { Unusable } from '../failures.ts'
import { type Summary, type SummaryOptions, summaryOf } from '../summary.ts'
import { connectToRead } from './connection.ts'
import { hasLog } from './file.ts'
import type { SqliteLocation } from './location.ts'
import { SqlitePlants } from './plants.ts'
import { sqliteRefusal } from './refusal.ts'
import { readAsCurrent } from './schema.ts'
import { statements } from './statements.ts'
import { keptBy } from './store.ts'
import { SqliteTokens } from './tokens.ts'

/** Reads all of a store, as it is at one moment. Rejects with Refused if it is no whole store. */
export async function verifySqliteStore(
  location: SqliteLocation,
  options: SummaryOptions & { readonly clock: Clock },
): Promise<Summary> {
  const { path } = location
  try {
    requireReadable(path)
    requireWritableFormat(path)
    const hadLog = hasLog(path)
    const requireAlone = (): void => {
      if (!hadLog && hasLog(path))
        throw new Unusable('another process has opened it meanwhile; verify it again')
    }
    const database = connectToRead(path, hadLog)
    try {
      requireWhole(database)
      const summary = await readAll(database, options)
      requireAlone()
      return summary
    } catch (error) {
      // What another process changes under this one looks like damage.
      requireAlone()
      throw error
    } finally {
      database.close()
    }
  } catch (error) {
    throw error instanceof Refused ? error : sqliteRefusal(location, error)
  }
}

/** Throws if there is no such file, or if this user may not read it. */
export function requireReadable(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new Unusable('there is no such file')
  if (!found.isFile()) throw new Unusable('it is not a regular file')
  accessSync(path, constants.R_OK)
}

/**
 * Throws if the header says that the file cannot be written: SQLite then reads it all the same
 * (https://www.sqlite.org/fileformat2.html, section 1.3.3).
 */
export function requireWritableFormat(path: string): void {
  const header = Buffer.alloc(20)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, header)
  } finally {
    closeSync(descriptor)
  }
  const isSqlite = header.toString('latin1', 0, 15) === 'SQLite format 3'
  if (isSqlite && header.subarray(18).some((version) => version > 2))
    throw new Unusable('it is damaged (its header names an unknown version of the format)')
}

/**
 * Throws if a file is not a store, or if anything in it does not fit together. From then on the
 * connection sees the store as it was at that moment.
 */
export function requireWhole(database: DatabaseSync): void {
  readAsCurrent(database)
  database.exec('begin; select 1 from sqlite_schema')
  const found = database.prepare(statements.integrity).all().flatMap(Object.values)
  if (found.join() !== 'ok')
    throw new Unusable(
      `it is damaged (${found.join('; ').replace(/\s+/g, ' ')}); restore it from a backup`,
    )
  const { texts, asking, finding } = database.prepare(statements.longTexts).get() as {
    [Name in 'texts' | 'asking' | 'finding']: number
  }
  if (texts !== asking || asking !== finding)
    throw new Unusable(
      `it is damaged (it holds ${texts} long texts, for which ${asking} plants ask, and ${finding} of these find theirs); restore it from a backup`,
    )
}

/** Reads all that a file holds, by a connection that sees it as one of the current version. */
export async function readAll(
  database: DatabaseSync,
  options: SummaryOptions & { readonly clock: Clock },
): Promise<Summary> {
  const refuse = (): Promise<never> => Promise.reject(new Error('the file is only read'))
  const plants = new SqlitePlants(database, refuse, options.clock)
  try {
    return await summaryOf(keptBy(plants, new SqliteTokens(database, refuse)), options)
  } catch (error) {
    throw error instanceof Failure ? error.cause : error
  }
}
