// The writer's thread: waits for batches and answers what became of them. The disk is waited for
// here, so that reads on the HTTP thread never are held up by it.
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../../clock.ts'
import { connect } from '../connection.ts'
import { findLoss } from '../file.ts'
import { BatchWriter } from './batch.ts'
import { type BatchOutcome, decode, type Write, type WriterData } from './crossing.ts'

const port = parentPort
if (port === null) throw new Error('the writer runs as a worker thread')
const { path, place } = workerData as WriterData
refuseLoss()
const database = await connect(path, systemClock)
refuseLoss()
const writer = new BatchWriter(database)
/** What became of the store's files, if they are not in their place any more. */
let loss: string | undefined

port.postMessage('ready')

/** A batch as JSON text; null says that there will be no more. */
port.on('message', (batch: string | null) => {
  if (batch !== null) {
    port.postMessage(JSON.stringify(outcomeOf(decode(batch))))
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
