// The writer's thread: waits for batches and answers what became of them. The disk is waited for
// here, so that reads on the HTTP thread never are held up by it.
import { parentPort, workerData } from 'node:worker_threads'
import { type BatchOutcome, BatchWriter, type Write } from './batchWriter.ts'
import { connect } from './connection.ts'
import { watchPlace } from './file.ts'

const port = parentPort
if (port === null) throw new Error('the writer runs as a worker thread')
const { path } = workerData as { readonly path: string }
const database = connect(path)
const writer = new BatchWriter(database)
const findLoss = watchPlace(path)
/** What became of the store's file, if it is not in its place any more. */
let loss: string | undefined

port.postMessage('ready')

/** A batch as JSON text; null says that there will be no more. */
port.on('message', (batch: string | null) => {
  if (batch !== null) {
    port.postMessage(JSON.stringify(outcomeOf(JSON.parse(batch) as Write[])))
    return
  }
  // SQLite removes the log of the file's name when it closes, and that may be another file's by now.
  if (findLoss() === undefined) database.close()
  port.close()
})

/** A batch counts only if the file still has its name once it is committed. */
function outcomeOf(batch: readonly Write[]): BatchOutcome {
  if (loss !== undefined) loss = findLoss()
  if (loss !== undefined) return { failed: loss, undone: true }
  const outcome = writer.apply(batch)
  loss = findLoss()
  return loss === undefined ? outcome : { failed: loss, undone: false }
}
