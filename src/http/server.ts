// The edge to the network, and the only file that knows Bun.serve.
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { Refused } from '../refused.ts'
import { watchDescriptors } from './descriptors.ts'
import { asFailure, refuse, responseInit } from './reply.ts'

/** What a request may ask of the connection that it came on. */
export interface Connections {
  /** The address of the client, or of the proxy before it. */
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
  /** Takes no new connections. Resolves when every request under way is answered. */
  readonly stop: () => Promise<void>
  /** Cuts all connections at once. */
  readonly cut: () => Promise<void>
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** How long a connection may stand still. */
  readonly idleSeconds: number
  readonly clock: Clock
  readonly log: Log
}

export function listen(
  { host, port, idleSeconds, clock, log }: ListenOptions,
  answer: (request: Request, connections: Connections) => Promise<Response>,
): Server {
  const bind = (toPort: number): Bun.Server<undefined> => {
    const connections: Connections = {
      addressOf: (request) => server.requestIP(request)?.address,
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
  let current = explained(host, port, () => bind(port))
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
    cut,
  }
}

/** How often a stop checks whether everything is answered. */
const pollMs = 10

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission is denied; ports below 1024 are for root',
  EADDRINUSE: 'another program listens there; choose another --port, or 0 for a free one',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'no such host is known',
}

function explained<Value>(host: string, port: number, bind: () => Value): Value {
  try {
    return bind()
  } catch (cause) {
    const reason =
      reasons[(cause as { code?: string }).code ?? ''] ?? 'the address cannot be used; check --host'
    throw new Refused(`Cannot listen on ${host} port ${port}: ${reason}.`, { cause })
  }
}
