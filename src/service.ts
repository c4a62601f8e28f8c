// The composition root: the one place that knows which parts a service is made of.
import { Failure } from './domain/failure.ts'
import type { Surroundings } from './domain/issueToken.ts'
import { Pace } from './domain/pace.ts'
import type { Store } from './domain/store.ts'
import { type Answer, answerer } from './http/answer.ts'
import { defaultLimits, type Limits } from './http/context.ts'
import { LongAnswers } from './http/longAnswers.ts'
import { loadPages } from './http/pages.ts'
import { ListenRefused, listen } from './http/server.ts'
import { Turn } from './http/turn.ts'
import type { Log } from './log.ts'
import type { StoreLocation } from './storeLocation.ts'
import { commandDeadlines, requestDeadlines } from './stores/postgres/deadlines.ts'
import { migratePostgresStore } from './stores/postgres/migration.ts'
import { refusal as postgresRefusal } from './stores/postgres/refusal.ts'
import { openPostgresStore } from './stores/postgres/store.ts'
import { refusal as sqliteRefusal } from './stores/sqlite/connection.ts'
import { openSqliteStore } from './stores/sqlite/store.ts'
import { StoreRefused } from './stores/storeRefused.ts'

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
  /** How many requests are not answered to their end. */
  readonly underWay: () => number
  /** Takes no new connections, finishes what is under way, and closes the store. */
  readonly stop: () => Promise<void>
}

/** Whether a store that is not there yet may be made. */
export type StoreUse = 'create' | 'existing'

/**
 * A command that concerns every plant or token may work for an hour; a request, and what is like
 * one, must be done in seconds.
 */
export type Patience = 'of a request' | 'of a command'

export interface StoreSurroundings extends Pick<Surroundings, 'randomBytes'> {
  /** Told of what the operator should know. */
  readonly note: (message: string) => void
  /** Told of what the operator should look at. */
  readonly warn?: (message: string, cause?: unknown) => void
  /** Absent: that of a request. */
  readonly patience?: Patience
  /** What to do if the store is not there and may not be made, as the end of a sentence. */
  readonly ifMissing?: string
}

/** Rejects with a sentence for the operator where the store cannot be used. */
export function openStore(
  location: StoreLocation,
  use: StoreUse,
  surroundings: StoreSurroundings,
): Promise<Store> {
  if (location.scheme === 'postgres') {
    const deadlines = surroundings.patience === 'of a command' ? commandDeadlines : requestDeadlines
    return openPostgresStore(location, { ...surroundings, deadlines })
  }
  return openSqliteStore(location.path, { create: use === 'create', ...surroundings })
}

/**
 * The store as a command uses it: what fails says so in a sentence for the operator, which names
 * the store and the cause.
 */
export function forOperator(store: Store, location: StoreLocation): Store {
  const refuse = (error: unknown): never => {
    throw explained(error, location)
  }
  return new Proxy(store, {
    get: (_, name) => {
      const member: unknown = Reflect.get(store, name)
      if (typeof member !== 'function') return member
      return (...args: readonly unknown[]) => {
        try {
          const answer: unknown = member.apply(store, args)
          return answer instanceof Promise ? answer.catch(refuse) : answer
        } catch (error) {
          return refuse(error)
        }
      }
    },
  })
}

function explained(error: unknown, location: StoreLocation): unknown {
  if (!(error instanceof Failure) || error.cause === undefined) return error
  const refused =
    location.scheme === 'postgres'
      ? postgresRefusal(location, error.cause)
      : sqliteRefusal(location.path, error.cause)
  if (error.refusal === 'outcome-unknown')
    refused.message += ' Whether the write was done is not known.'
  return refused
}

/** Whether an error is an expected one, whose message is a sentence for the operator. */
export function isRefusal(error: unknown): error is Error {
  return error instanceof StoreRefused || error instanceof ListenRefused || error instanceof Failure
}

/**
 * Brings a store to this version's schema and resolves to the statements that were needed; where
 * `onlyLook` it carries out none. Undefined for an embedded store, which is brought there whenever
 * it is opened.
 */
export async function migrateStore(
  location: StoreLocation,
  onlyLook: boolean,
): Promise<readonly string[] | undefined> {
  return location.scheme === 'postgres' ? await migratePostgresStore(location, onlyLook) : undefined
}

/** Starts a service; once this resolves, it answers. Rejects with a sentence for the operator. */
export async function startService(
  config: ServiceConfig,
  surroundings: ServiceSurroundings,
): Promise<Service> {
  const { log, nowMs, randomBytes, limits = defaultLimits } = surroundings
  const pages = loadPages()
  // It listens first, so that a port which is taken leaves no new store behind. Requests wait until
  // the store is open.
  const opened = Promise.withResolvers<void>()
  let answer: Answer = async (request, connections) => {
    await opened.promise
    return await answer(request, connections)
  }
  const listenOptions = { ...config, idleSeconds: limits.idleSeconds }
  const server = listen(listenOptions, (request, connections) => answer(request, connections), log)
  const store = await openStore(config.store, 'create', {
    randomBytes,
    note: log.note,
    warn: log.warn,
  }).catch(async (error) => {
    await server.cut()
    throw error
  })
  let stopping = false
  const pace = new Pace()
  answer = answerer({
    store,
    log,
    limits,
    pages,
    turn: new Turn(),
    pace,
    longAnswers: new LongAnswers(limits.waitingBytesMax, pace),
    nowMs,
    newRequestId: requestIds(randomBytes),
    isStopping: () => stopping,
  })
  opened.resolve()
  return {
    url: server.url,
    store,
    underWay: server.underWay,
    stop: async () => {
      stopping = true
      await server.stop()
      await store.close()
    },
  }
}

/** Random request ids: a counter would tell each client how much the others ask. */
function requestIds(randomBytes: Surroundings['randomBytes']): () => string {
  let text = ''
  let at = 0
  return () => {
    // Drawn in bulk, because every answer carries one.
    if (at === text.length) {
      text = Buffer.from(randomBytes(requestIdBytes * 256)).toString('base64url')
      at = 0
    }
    at += requestIdLength
    return text.slice(at - requestIdLength, at)
  }
}

const requestIdBytes = 12
/** In base64url. */
const requestIdLength = 16
