// The HTTP thread's end of the writer's thread: one batch under way at a time.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Channel } from './groupCommit.ts'

interface UnderWay {
  readonly resolve: (outcome: string) => void
  readonly reject: (error: Error) => void
}

export function writerThread(path: string): Channel {
  const worker = new Worker(new URL('./writer.ts', import.meta.url), { workerData: { path } })
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
        if (dead !== undefined) reject(dead)
        else worker.postMessage(batch)
      }),
    close: async () => {
      const exited = dead === undefined ? once(worker, 'exit') : undefined
      worker.postMessage(null)
      await exited
    },
  }
}
