// The writer's thread: waits for batches and answers what became of them. The disk is waited for
// here, so that reads on the HTTP thread never are held up by it.
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '../connection.ts'
import { findLoss, type Place } from '../file.ts'
import { type BatchOutcome, BatchWriter, type Write } from './batch.ts'

export interface WriterData {
  readonly path: string
  /**
   * What the files were when the store was opened: a writer that comes later must not write to
   * others.
   */
  readonly place: Place
}

const port = parentPort
if (port === null) throw new Error('the writer runs as a worker thread')
const { path, place } = workerData as WriterData
refuseLoss()
const database = connect(path)
refuseLoss()
const writer = new BatchWriter(database)
/** What became of the store's files, if they are not in their place any more. */
let loss: string | undefined

port.postMessage('ready')

/** A batch as JSON text; null says that there will be no more. */
port.on('message', (batch: string | null) => {
  if (batch !== null) {
    port.postMessage(JSON.stringify(outcomeOf(JSON.parse(batch) as Write[])))
    return
  }
  // SQLite removes the log of the file's name when it closes, and that may be another file's by
  // now.
  if (findLoss(place) === undefined) database.close()
  port.close()
})

function refuseLoss(): void {
  const found = findLoss(place)
  if (found !== undefined) throw new Error(found)
}

/**
 * A batch counts only if the files are in their place once it is committed. After a loss none is
 * written until they are.
 */
function outcomeOf(batch: readonly Write[]): BatchOutcome {
  if (loss !== undefined) loss = findLoss(place)
  if (loss !== undefined) return { failed: loss, undone: true }
  const outcome = writer.apply(batch)
  loss = findLoss(place)
  return loss === undefined ? outcome : { failed: loss, undone: false }
}
