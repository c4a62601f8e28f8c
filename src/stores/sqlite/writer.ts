// The writer's thread: waits for batches and answers what became of them. The disk is waited for
// here, so that reads on the HTTP thread never are held up by it.
import { parentPort, workerData } from 'node:worker_threads'
import { BatchWriter, type Write } from './batchWriter.ts'
import { connect } from './connection.ts'

const port = parentPort
if (port === null) throw new Error('the writer runs as a worker thread')
const database = connect((workerData as { path: string }).path)
const writer = new BatchWriter(database)

port.postMessage('ready')

/** A batch as JSON text; null says that there will be no more. */
port.on('message', (batch: string | null) => {
  if (batch === null) {
    database.close()
    port.close()
  } else {
    port.postMessage(JSON.stringify(writer.apply(JSON.parse(batch) as Write[])))
  }
})
