// A backup: a copy of a store's file as it is at one moment, made while others write to the store.
// And the way back: a copy of a backup, verified, in the place of a store that is not there.
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../clock.ts'
import { Refused } from '../../refused.ts'
import { Unusable } from '../failures.ts'
import type { Summary } from '../summary.ts'
import { connectToRead } from './connection.ts'
import type { CopyData, CopyMessage } from './copyThread.ts'
import { followLinks, makeWhole, prepareFile, refuseLostLog, requireAbsent } from './file.ts'
import type { SqliteLocation } from './location.ts'
import { sqliteRefusal } from './refusal.ts'
import { readAsCurrent } from './schema.ts'
import { readAll, requireReadable, requireWritableFormat } from './verify.ts'

export interface BackupOptions {
  readonly clock: Clock
  /** Told of further pages that are copied, or plants that are read, and of how many there are. */
  readonly progress: (phase: 'pages' | 'plants', count: number, total: number) => void
  /** Ends the work early: it leaves nothing behind and rejects with the reason of the signal. */
  readonly signal: AbortSignal
}

export interface Backup {
  readonly plants: number
  readonly tokens: number
  readonly bytes: number
}

/** Copies a store to a file that is not there yet. Rejects with Refused. */
export async function backupSqliteStore(
  store: SqliteLocation,
  target: SqliteLocation,
  options: BackupOptions,
): Promise<Backup> {
  const { clock } = options
  try {
    const ifMissing = 'check --store'
    await prepareFile(store.path, { use: 'existing', clock, note: () => {}, ifMissing })
    await refuseLostLog(store.path, clock)
  } catch (error) {
    throw sqliteRefusal(store, error)
  }
  try {
    requireAbsent(target.path)
    return await makeWhole(target.path, async (made) => {
      const { plants, tokens } = await copyPages(
        { kind: 'backup', from: store.path, to: made },
        options,
      )
      return { plants, tokens, bytes: statSync(made).size }
    })
  } catch (error) {
    throw error instanceof Refused ? error : sqliteRefusal(target, error, `made from ${store.path}`)
  }
}

/**
 * Puts a copy of a backup in the place of a store, of which nothing may be there. Resolves to what
 * the store holds; rejects with Refused.
 */
export async function restoreSqliteStore(
  backup: SqliteLocation,
  store: SqliteLocation,
  options: BackupOptions,
): Promise<Summary> {
  try {
    requireReadable(backup.path)
    requireWritableFormat(backup.path)
  } catch (error) {
    throw sqliteRefusal(backup, error)
  }
  const path = followLinks(store.path)
  try {
    requireAbsent(path)
    return await makeWhole(path, async (made) => {
      await copyPages({ kind: 'restore', from: backup.path, to: made }, options)
      const database = connectToRead(made, false)
      try {
        readAsCurrent(database)
        return await readAll(database, {
          clock: options.clock,
          progress: (count, total) => options.progress('plants', count, total),
          signal: options.signal,
        })
      } finally {
        database.close()
      }
    })
  } catch (error) {
    throw error instanceof Refused
      ? error
      : sqliteRefusal({ path }, error, `made from ${backup.path}`)
  }
}

async function copyPages(
  data: CopyData,
  { progress, signal }: Pick<BackupOptions, 'progress' | 'signal'>,
): Promise<Pick<Backup, 'plants' | 'tokens'>> {
  signal.throwIfAborted()
  const worker = new Worker(new URL('./copyThread.ts', import.meta.url), { workerData: data })
  try {
    return await new Promise((resolve, reject) => {
      let pagesDone = 0
      signal.addEventListener('abort', () => reject(signal.reason))
      worker.on('error', reject)
      worker.on('exit', () => reject(new Error('the thread of the copy has ended')))
      worker.on('message', (message: CopyMessage) => {
        if (message.kind === 'done') resolve(message)
        else if (message.kind === 'progress') {
          progress('pages', message.pagesDone - pagesDone, message.pages)
          pagesDone = message.pagesDone
        } else if (message.isUnusable) reject(new Unusable(message.message))
        else reject(Object.assign(new Error(message.message), { errcode: message.errcode }))
      })
    })
  } finally {
    await worker.terminate()
  }
}
