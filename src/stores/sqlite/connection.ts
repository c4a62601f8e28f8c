// Opening the database file: in WAL mode, synced at every commit.
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { Clock } from '../../clock.ts'
import { nothingDone } from '../failures.ts'
import { refuseForeign } from './schema.ts'

/** How long a statement waits for another process that holds the file's write lock. */
const lockWaitMs = 10_000

/**
 * A connection to an existing file. synchronous = full makes every commit wait until the log is on
 * the disk: with less, SQLite would acknowledge writes that a power cut takes back.
 */
export async function connect(path: string, clock: Clock): Promise<DatabaseSync> {
  const database = openExisting(path, lockWaitMs)
  return await closingOnError(database, async () => {
    refuseForeign(database)
    // If the first page of a table is damaged, the start must find that, and not a client.
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all()
    for (const { name } of tables) {
      const firstRow = database.prepare(`select * from "${name}" limit 1`)
      firstRow.setReadBigInts(true)
      firstRow.get()
    }
    await onceUnlocked(database, clock, () => database.exec('pragma journal_mode = wal'))
    database.exec('pragma synchronous = full; pragma trusted_schema = off')
    return database
  })
}

/**
 * By itself SQLite makes a file that is not there, and would put an empty one in the place of a
 * store that was moved.
 */
function openExisting(path: string, timeout: number): DatabaseSync {
  return new DatabaseSync(`${pathToFileURL(path).href}?mode=rw`, { timeout })
}

/**
 * A connection that changes nothing: not the file, and not what is beside it if there is no log. If
 * there is none, nobody else may open the file meanwhile.
 */
export function connectToRead(path: string, hasLog: boolean): DatabaseSync {
  const mode = hasLog ? 'mode=ro' : 'immutable=1'
  return new DatabaseSync(`${pathToFileURL(path).href}?${mode}`, { timeout: lockWaitMs })
}

/**
 * Whether another process has a database in WAL mode open. Each that has holds a lock on the file
 * itself until it ends, so this one cannot have the file for itself. Unlike the other locks, that
 * one does not depend on the log's index.
 */
export function isInUse(path: string): boolean {
  const database = openExisting(path, 0)
  try {
    database.exec('pragma locking_mode = exclusive; select 1 from sqlite_schema')
    return false
  } catch (error) {
    // What else is wrong with the file is found when it is opened.
    return isBusy(error)
  } finally {
    database.close()
  }
}

function isBusy(error: unknown): boolean {
  return (((error as { errcode?: number }).errcode ?? 0) & 0xff) === 5
}

/**
 * Does something that takes the write lock. While another process holds it, this thread goes on
 * with other work. Rejects if that takes too long.
 */
export async function onceUnlocked(
  database: DatabaseSync,
  clock: Clock,
  work: () => void,
): Promise<void> {
  const endMs = clock.monotonicMs() + lockWaitMs
  database.exec('pragma busy_timeout = 0')
  for (;;) {
    try {
      work()
      break
    } catch (error) {
      if (!isBusy(error) || clock.monotonicMs() > endMs) throw error
      await clock.sleep(10)
    }
  }
  database.exec(`pragma busy_timeout = ${lockWaitMs}`)
}

/** Does something with a connection, and closes it if that fails. */
export async function closingOnError<Value>(
  database: DatabaseSync,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    database.close()
    throw error
  }
}

/** A read that fails says so in the domain's terms: nothing is lost, and a retry may succeed. */
export function reading<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw nothingDone(cause)
  }
}
