// The edge to the network, and the only file that knows Bun.serve.
import { readFile } from 'node:fs/promises'
import type { BlockList } from 'node:net'
import type { Clock } from '../clock.ts'
import { type Refusal, refusals } from '../contract/refusals.ts'
import type { Log } from '../log.ts'
import { Refused } from '../refused.ts'
import { clientAddress, withoutMapping } from './clientAddress.ts'
import { watchDescriptors } from './descriptors.ts'
import { asFailure, refuse, responseInit } from './reply.ts'

/** What a request may ask of the connection that it came on. */
export interface Connections {
  /** The address of the client, or of the first proxy before it that is not trusted. */
  readonly addressOf: (request: Request) => string | undefined
  /** Says that a body is still coming, so that the connection does not count as standing still. */
  readonly keepOpen: (request: Request) => void
  /** Ends a connection whose reader is too slow, within some seconds. */
  readonly cut: (request: Request) => void
}

export interface Server {
  readonly url: string
  /** How many requests have no complete answer yet. */
  readonly underWay: () => number
  /** How many connections clients hold; undefined if this system does not say (macOS). */
  readonly connections: () => Promise<number | undefined>
  /** Takes no new connections. Resolves when every request under way is answered. */
  readonly stop: () => Promise<void>
  /** Cuts all connections at once. */
  readonly cut: () => Promise<void>
}

export type MetricsServer = Pick<Server, 'url' | 'cut'>

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** How long a connection may stand still. */
  readonly idleSeconds: number
  /** The proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: BlockList | undefined
  readonly clock: Clock
  readonly log: Log
}

export function listen(
  { host, port, idleSeconds, trustedProxies, clock, log }: ListenOptions,
  answer: (request: Request, connections: Connections) => Promise<Response>,
): Server {
  const bind = (toPort: number): Bun.Server<undefined> => {
    const connections: Connections = {
      addressOf: (request) => {
        const peer = server.requestIP(request)?.address
        if (peer === undefined) return undefined
        return trustedProxies === undefined
          ? withoutMapping(peer)
          : clientAddress(peer, request.headers.get('x-forwarded-for'), trustedProxies)
      },
      keepOpen: (request) => server.timeout(request, idleSeconds),
      // The shortest time there is: the runtime has no way to end a connection at once.
      cut: (request) => server.timeout(request, 1),
    }
    const server = Bun.serve({
      hostname: host,
      port: toPort,
      // Bun's default would let a second server on Linux take half of this one's connections.
      reusePort: false,
      development: false,
      idleTimeout: idleSeconds,
      // request.ts limits bodies, because this limit would answer without an Error body.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch: (request) => answer(request, connections),
      error: (cause) => {
        log.failure('An answer could not be made.', { cause })
        const reply = refuse(asFailure(cause))
        return new Response(reply.body as string, responseInit(reply))
      },
    })
    return server
  }
  let current = explained(host, port, '--port', () => bind(port))
  const boundPort = current.port ?? port
  /** Servers that take no new connections but may still have requests under way. */
  let earlier: Bun.Server<undefined>[] = []

  // Without a free descriptor the runtime tries to accept without a pause, which takes half a core.
  // So the service stops listening. That also closes idle connections and frees their descriptors.
  const stopWatching = watchDescriptors(
    {
      exhausted: () => {
        log.warn(
          'out of file descriptors: idle connections are closed, and no new ones are taken until there are some (raise ulimit -n)',
        )
        void current.stop(false)
        earlier = [...earlier.filter(({ pendingRequests }) => pendingRequests > 0), current]
      },
      available: () => {
        try {
          current = bind(boundPort)
        } catch {
          return false
        }
        log.note('connections are taken again')
        return true
      },
    },
    clock,
  )

  const underWay = (): number =>
    new Set([current, ...earlier])
      .values()
      .reduce((sum, { pendingRequests }) => sum + pendingRequests, 0)
  const cut = async (): Promise<void> => {
    stopWatching()
    await Promise.all([current, ...earlier].map((server) => server.stop(true)))
  }
  const shownHost = host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${shownHost}:${boundPort}`,
    stop: async () => {
      stopWatching()
      void current.stop(false)
      while (underWay() > 0) await clock.sleep(pollMs)
      // The connections that are still open are idle, or have sent only half a header.
      await cut()
    },
    underWay,
    connections: () => connectionsTo(boundPort),
    cut,
  }
}

/**
 * Answers GET /metrics, and nothing else, on the loopback address. Throws Refused if the port cannot
 * be used.
 */
export function listenForMetrics(
  { port, log }: Pick<ListenOptions, 'port' | 'log'>,
  metrics: () => Promise<string>,
): MetricsServer {
  const host = '127.0.0.1'
  const server = explained(host, port, '--metrics-port', () =>
    Bun.serve({
      hostname: host,
      port,
      reusePort: false,
      development: false,
      fetch: async (request) => {
        if (new URL(request.url).pathname !== '/metrics')
          return plainRefusal('path-unknown', 'Only /metrics is here.')
        if (request.method !== 'GET')
          return plainRefusal('method-not-allowed', 'Only GET is taken.')
        return new Response(await metrics(), { headers: { 'content-type': metricsMedia } })
      },
      error: (cause) => {
        log.failure('The metrics could not be told.', { cause })
        return plainRefusal('internal', 'The service failed to answer.')
      },
    }),
  )
  return { url: `http://${host}:${server.port}/metrics`, cut: () => server.stop(true) }
}

/** The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/. */
const metricsMedia = 'text/plain; version=0.0.4; charset=utf-8'

function plainRefusal(refusal: Refusal, sentence: string): Response {
  return new Response(`${sentence}\n`, { status: refusals[refusal].status })
}

/**
 * Counts the connections to a port by the kernel's tables, because the runtime does not tell. In
 * these a connection that this end has not closed is in state 01 or 08.
 */
async function connectionsTo(port: number): Promise<number | undefined> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/self/net/${name}`, 'latin1').catch(() => '')),
  )
  if (tables.every((table) => table === '')) return undefined
  const portInHex = port.toString(16).toUpperCase().padStart(4, '0')
  const connection = new RegExp(
    `^ *\\d+: [0-9A-F]+:${portInHex} [0-9A-F]+:[0-9A-F]{4} 0[18] `,
    'gm',
  )
  return tables.join('\n').match(connection)?.length ?? 0
}

/** How often a stop checks whether everything is answered. */
const pollMs = 10

const reasons = (flag: string): Readonly<Record<string, string>> => ({
  EACCES: 'permission is denied; ports below 1024 are for root',
  EADDRINUSE: `another program listens there; choose another ${flag}, or 0 for a free one`,
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'no such host is known',
})

function explained<Value>(host: string, port: number, flag: string, bind: () => Value): Value {
  try {
    return bind()
  } catch (cause) {
    const { code = '' } = cause as { code?: string }
    const reason = reasons(flag)[code] ?? 'the address cannot be used; check --host'
    throw new Refused(`Cannot listen on ${host} port ${port}: ${reason}.`, { cause })
  }
}
