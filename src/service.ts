// The composition root: the one place that knows which parts a service is made of.
import type { BlockList } from 'node:net'
import type { Clock } from './clock.ts'
import type { Store } from './domain/store.ts'
import { type Answer, answerer } from './http/answer.ts'
import { defaultLimits, type Limits } from './http/context.ts'
import { LongAnswers } from './http/longAnswers.ts'
import { Pace } from './http/pace.ts'
import { loadPages } from './http/pages.ts'
import { listen, listenForMetrics, type MetricsServer } from './http/server.ts'
import { Strangers } from './http/strangers.ts'
import type { Log } from './log.ts'
import { Metrics } from './metrics.ts'
import type { StoreLocation } from './stores/location.ts'
import { openStore } from './stores/open.ts'
import { sharingReads } from './stores/sharing.ts'

export interface ServiceOptions {
  readonly host: string
  readonly port: number
  /** Where the metrics are, on the loopback address; absent: nowhere. */
  readonly metricsPort?: number | undefined
  readonly store: StoreLocation
  /** The proxies whose X-Forwarded-For is believed. Absent: none. */
  readonly trustedProxies?: BlockList | undefined
  /** What goes before a path in links: a URL without a slash at its end. Absent: nothing. */
  readonly publicUrl?: string
  readonly log: Log
  readonly clock: Clock
  readonly randomBytes: (count: number) => Uint8Array
  /** Other limits than the published ones, for tests. */
  readonly limits?: Limits
}

export interface Service {
  /** Where it listens: http://HOST:PORT. */
  readonly url: string
  /** Where its metrics are, if they were asked for: http://127.0.0.1:PORT/metrics. */
  readonly metricsUrl: string | undefined
  readonly store: Store
  /** How many requests have no complete answer yet. */
  readonly underWay: () => number
  /** Takes no new connections, finishes what is under way, and closes the store. */
  readonly stop: () => Promise<void>
}

/**
 * Starts a service, which answers once this resolves. Rejects with Refused if the service cannot
 * listen or open its store.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { host, port, metricsPort, trustedProxies, publicUrl = '' } = options
  const { log, clock, randomBytes, limits = defaultLimits } = options
  const pages = loadPages(publicUrl)
  const metrics = metricsPort === undefined ? undefined : new Metrics(clock)
  // It listens first, so that a port that is taken leaves no new store behind. Requests wait until
  // the store is open.
  const opened = Promise.withResolvers<void>()
  let answer: Answer = async (request, connections) => {
    await opened.promise
    return await answer(request, connections)
  }
  const server = listen(
    { host, port, idleSeconds: limits.idleSeconds, trustedProxies, clock, log },
    (request, connections) => answer(request, connections),
  )
  let store: Store
  let metricsServer: MetricsServer | undefined
  try {
    if (metrics !== undefined && metricsPort !== undefined)
      metricsServer = listenForMetrics({ port: metricsPort, log }, async () => {
        await opened.promise
        return await metrics.text(store, await server.connections())
      })
    store = await openStore(options.store, {
      use: 'create',
      patience: 'of a request',
      clock,
      randomBytes,
      note: log.note,
      warn: log.warn,
      committed: (writes, tookMs) => metrics?.committed(writes, tookMs),
    })
  } catch (error) {
    await server.cut()
    await metricsServer?.cut()
    throw error
  }
  let stopping = false
  const pace = new Pace()
  const strangers = new Strangers(log, clock)
  answer = answerer({
    store: sharingReads(store, setImmediate),
    log,
    requestEnded: (entry, status, ending) => {
      if (!probes.has(entry.operation) && strangers.mayHaveLine(entry))
        log.request(entry, status, ending)
      metrics?.requestEnded(entry, status)
    },
    limits,
    publicUrl,
    pages,
    pace,
    longAnswers: new LongAnswers(limits.waitingBytesMax, pace, clock),
    clock,
    newRequestId: requestIds(randomBytes),
    isStopping: () => stopping,
  })
  opened.resolve()
  return {
    url: server.url,
    metricsUrl: metricsServer?.url,
    store,
    underWay: server.underWay,
    stop: async () => {
      stopping = true
      await server.stop()
      await metricsServer?.cut()
      await store.close()
    },
  }
}

/** Machines ask these every few seconds, and their lines in the log would hide the others. */
const probes: ReadonlySet<string | undefined> = new Set(['livez', 'readyz'])

/** Request ids are random, because a counter would tell each client how much the others ask. */
function requestIds(randomBytes: ServiceOptions['randomBytes']): () => string {
  let text = ''
  let at = 0
  return () => {
    // Made in bulk, because every answer carries one.
    if (at === text.length) {
      text = Buffer.from(randomBytes(requestIdBytes * 256)).toString('base64url')
      at = 0
    }
    at += requestIdLength
    return text.slice(at - requestIdLength, at)
  }
}

const requestIdBytes = 12
/** Characters of those bytes in base64url. */
const requestIdLength = 16
