// A backup: a copy of a store's file as it is at one moment, made while others write to the store.
import { statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../../clock.ts'
import { Unusable } from '../failures.ts'
import type { CopyData, CopyMessage } from './copyThread.ts'
import { makeWhole, prepareFile, refuseLostLog, requireAbsent } from './file.ts'
import type { SqliteLocation } from './location.ts'
import { sqliteRefusal } from './refusal.ts'

export interface BackupOptions {
  readonly clock: Clock
  /** Told of further pages that are copied, and of how many there are in all. */
  readonly progress: (pages: number, total: number) => void
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
  const { clock, signal } = options
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
      const { plants, tokens } = await copyPages({ from: store.path, to: made }, options)
      return { plants, tokens, bytes: statSync(made).size }
    })
  } catch (error) {
    throw error === signal.reason ? error : sqliteRefusal(target, error, `made from ${store.path}`)
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
          progress(message.pagesDone - pagesDone, message.pages)
          pagesDone = message.pagesDone
        } else if (message.isUnusable) reject(new Unusable(message.message))
        else reject(Object.assign(new Error(message.message), { errcode: message.errcode }))
      })
    })
  } finally {
    await worker.terminate()
  }
}
