// The HTTP thread's end of the writer's thread: one batch under way at a time.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Channel } from './commit.ts'

interface UnderWay {
  readonly resolve: (outcome: string) => void
  readonly reject: (error: Error) => void
}

/** Starts the writer on a store that is prepared. Resolves once it can write, rejects where it cannot. */
export async function writerThread(path: string): Promise<Channel> {
  const worker = new Worker(new URL('./writer.ts', import.meta.url), { workerData: { path } })
  // The writer says so itself once its database is open.
  await once(worker, 'message')
  let underWay: UnderWay | undefined
  let dead: Error | undefined
  const die = (error: Error): void => {
    dead ??= error
    underWay?.reject(dead)
  }
  worker.on('message', (outcome: string) => underWay?.resolve(outcome))
  worker.on('error', die)
  worker.on('exit', () => die(new Error('the writer has ended')))
  return {
    send: (batch) =>
      new Promise((resolve, reject) => {
        underWay = { resolve, reject }
        worker.postMessage(batch)
      }),
    close: async () => {
      const exited = dead === undefined ? once(worker, 'exit') : undefined
      worker.postMessage(null)
      await exited
    },
    failure: () => dead,
  }
}
