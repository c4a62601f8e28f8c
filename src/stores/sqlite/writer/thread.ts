// The writer's thread: waits for batches, applies each in one transaction, and so with one sync of
// the disk, and answers what became of them. It waits for the disk, so that reads on the HTTP
// thread are never held up by it.
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../../clock.ts'
import { tokenValues } from '../../tokens.ts'
import { connect } from '../connection.ts'
import { findLoss } from '../file.ts'
import { shortTextBytesMax } from '../schema.ts'
import { statements } from '../statements.ts'
import { type BatchOutcome, decode, type Outcome, type Write, type WriterData } from './crossing.ts'

const port = parentPort
if (port === null) throw new Error('the writer runs as a worker thread')
const { path, place } = workerData as WriterData
refuseLoss()
const database = await connect(path, systemClock)
refuseLoss()
const begin = database.prepare(statements.begin)
const commit = database.prepare(statements.commit)
const keepLongText = database.prepare(statements.keepLongText)
const writes = {
  createPlant: database.prepare(statements.createPlant),
  deletePlant: database.prepare(statements.deletePlant),
  issueToken: database.prepare(statements.issueToken),
  issueFirstToken: database.prepare(statements.issueFirstToken),
  revokeToken: database.prepare(statements.revokeToken),
  noteTokenUse: database.prepare(statements.noteTokenUse),
  probe: database.prepare(statements.probe),
  tryCommit: database.prepare(statements.tryCommit),
} as const
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
  let outcome: BatchOutcome
  let isCommitting = false
  try {
    begin.run()
    outcome = { outcomes: batch.map(apply) }
    isCommitting = true
    commit.run()
  } catch (error) {
    if (database.isTransaction) database.exec('rollback')
    const { errcode } = error as { errcode?: number }
    outcome = {
      failed: error instanceof Error ? error.message : String(error),
      // https://sqlite.org/rescode.html: a commit that finds the file locked or the disk full has
      // not taken effect.
      undone: !isCommitting || errcode === 5 || errcode === 13,
    }
  }
  loss = findLoss(place)
  return loss === undefined ? outcome : { failed: loss, undone: false }
}

function apply(write: Write): Outcome {
  switch (write.kind) {
    case 'createPlant': {
      const { account, plant } = write
      const { id, name, tag, idempotencyKey: key } = plant
      const textBytes = Buffer.byteLength(name) + Buffer.byteLength(tag ?? '')
      if (textBytes <= shortTextBytesMax)
        return Number(writes.createPlant.run(account, id, name, tag, key, null).changes)
      const { changes, lastInsertRowid } = keepLongText.run(name, tag, account, id)
      if (changes === 0) return 0
      return Number(writes.createPlant.run(account, id, '', null, key, lastInsertRowid).changes)
    }
    case 'deletePlant':
      return Number(writes.deletePlant.run(write.account, write.id).changes)
    case 'issueToken':
    case 'issueFirstToken':
      return Number(writes[write.kind].run(write.hash, ...tokenValues(write.token)).changes)
    case 'revokeToken':
      return Number(writes.revokeToken.run(write.nowMs, write.id).changes)
    case 'noteTokenUse':
      return Number(writes.noteTokenUse.run(write.usedAtMs, write.id).changes)
    case 'probe':
      return Number(writes.probe.run().changes)
    case 'tryCommit':
      writes.tryCommit.run()
      return 1
  }
}
