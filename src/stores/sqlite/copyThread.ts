// Copies a file page by page on a thread of its own: SQLite's backup interface, as the runtime has
// it, lets its thread do nothing else until it is done, not even take a request to stop.
//
// The pages are those of one moment: the connection is in a transaction that reads, so that writes
// of others neither show in the copy nor make the interface begin again. They go on meanwhile, into
// the log, which keeps growing until the copy is done. `vacuum into` would do that too, but it
// tells no progress and writes every row again, so that the copy of a damaged file may look whole.
import { backup, DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../clock.ts'
import { Unusable } from '../failures.ts'
import { connect, connectToRead } from './connection.ts'
import { hasLog } from './file.ts'
import { refuseForeign } from './schema.ts'
import { statements } from './statements.ts'
import { requireWhole } from './verify.ts'

export interface CopyData {
  /** A backup is made of a store in use; what is restored is only read, and the copy is verified. */
  readonly kind: 'backup' | 'restore'
  /** Both are absolute. `to` is an empty file. */
  readonly from: string
  readonly to: string
}

export type CopyMessage =
  | { readonly kind: 'progress'; readonly pagesDone: number; readonly pages: number }
  | { readonly kind: 'done'; readonly plants: number; readonly tokens: number }
  | {
      readonly kind: 'failed'
      readonly message: string
      /** SQLite's result code, if the error has one. */
      readonly errcode: number | undefined
      readonly isUnusable: boolean
    }

/** Some milliseconds of work: 4 MiB. */
const pagesAtOnce = 1024

function post(message: CopyMessage): void {
  parentPort?.postMessage(message)
}

const { kind, from, to } = workerData as CopyData
try {
  const source =
    kind === 'backup' ? await connect(from, systemClock) : connectToRead(from, hasLog(from))
  refuseForeign(source)
  source.exec('begin; select 1 from sqlite_schema')
  const pages = await backup(source, to, {
    rate: pagesAtOnce,
    progress: ({ totalPages, remainingPages }) =>
      post({ kind: 'progress', pagesDone: totalPages - remainingPages, pages: totalPages }),
  })
  post({ kind: 'progress', pagesDone: pages, pages })
  source.close()
  const copy = new DatabaseSync(to)
  // One file alone, which can be read where nothing can be written.
  copy.exec('pragma journal_mode = delete')
  if (kind === 'restore') requireWhole(copy)
  const { plants } = copy.prepare(statements.countPlants).get() as { plants: number }
  const { tokens } = copy.prepare(statements.countTokens).get() as { tokens: number }
  copy.close()
  post({ kind: 'done', plants, tokens })
} catch (error) {
  const { message, errcode } = error as Error & { errcode?: number }
  post({ kind: 'failed', message, errcode, isUnusable: error instanceof Unusable })
}
