// The composition root: the one place that knows which parts a service is made of.
import type { StoreLocation } from './config.ts'
import type { Surroundings } from './domain/issueToken.ts'
import type { Store } from './domain/store.ts'
import { answerer } from './http/answer.ts'
import { defaultLimits, type Limits } from './http/context.ts'
import { loadPages } from './http/pages.ts'
import { listen } from './http/server.ts'
import { Turn } from './http/turn.ts'
import type { Log } from './log.ts'
import { openSqliteStore } from './stores/sqlite/store.ts'

export interface ServiceConfig {
  readonly host: string
  readonly port: number
  readonly store: StoreLocation
}

export interface ServiceSurroundings extends Surroundings {
  readonly log: Log
  /** Other limits than the published ones, for tests. */
  readonly limits?: Limits
}

export interface Service {
  /** Where it listens: http://HOST:PORT. */
  readonly url: string
  readonly store: Store
  /** Takes no new connections, finishes what is under way, and closes the store. */
  readonly stop: () => Promise<void>
}

/** Whether a store that is not there yet may be made. */
export type StoreUse = 'create' | 'existing'

export function openStore({ path }: StoreLocation, use: StoreUse): Promise<Store> {
  return openSqliteStore(path, { create: use === 'create' })
}

/** Starts a service; once this resolves, it answers. Rejects with a sentence for the operator. */
export async function startService(config: ServiceConfig, surroundings: ServiceSurroundings): Promise<Service> {
  const { log, nowMs, randomBytes, limits = defaultLimits } = surroundings
  const store = await openStore(config.store, 'create')
  let stopping = false
  const newRequestId = requestIds(randomBytes)
  const answer = answerer({
    store,
    log,
    limits,
    pages: loadPages(),
    turn: new Turn(),
    nowMs,
    newRequestId,
    isStopping: () => stopping,
  })
  const server = await closingOnFailure(store, () => listen({ ...config, idleSeconds: limits.idleSeconds }, answer, log))
  return {
    url: server.url,
    store,
    stop: async () => {
      stopping = true
      await server.stop()
      await store.close()
    },
  }
}

async function closingOnFailure<Value>(store: Store, work: () => Value): Promise<Value> {
  try {
    return work()
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Names for requests: unique in this process by a number, and among processes by what stands before it. */
function requestIds(randomBytes: Surroundings['randomBytes']): () => string {
  const process = Buffer.from(randomBytes(6)).toString('hex')
  let requests = 0
  return () => {
    requests += 1
    return `${process}-${requests.toString(36)}`
  }
}
