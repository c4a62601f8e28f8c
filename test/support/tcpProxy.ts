// A TCP proxy on loopback, for what a network does to connections: it falls silent in both ways or
// in one, it breaks, and it loses answers.
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /**
   * Passes nothing on, either way; keeps connections open, and accepts new ones without an answer.
   */
  freeze(): void
  /** Passes nothing on for the present connections; new ones work. */
  freezePresent(): void
  /** Passes on requests and keeps back the answers. */
  freezeReplies(): void
  /** Of the answers to come, loses this share (0 to 1): it breaks the client's connection instead. */
  loseReplies(share: number): void
  /** Passes on everything again, what was kept back first. */
  thaw(): void
  /** Breaks every present connection. */
  cut(): void
  /**
   * Breaks every present connection, but on the client's side only: what was kept back still
   * reaches the target after `thaw`.
   */
  cutClients(): void
  close(): Promise<void>
}

/** What is kept back at present. */
type Frozen = 'nothing' | 'replies' | 'everything'

/** Two connections that make one: the client's, and the one to the target. */
interface Pair {
  hold(frozen: Frozen): void
  destroyClient(): void
  destroy(): void
}

const host = '127.0.0.1'

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let frozen: Frozen = 'nothing'
  let lostShare = 0
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    const server = connect({ host, port: targetPort, allowHalfOpen: true })
    // Before the relay, which then has nobody to pass the answer on to.
    server.on('data', () => {
      if (Math.random() < lostShare) client.destroy()
    })
    const pair = joined(client, server)
    pair.hold(frozen)
    pairs.add(pair)
    for (const socket of [client, server])
      socket.once('close', () => {
        if (client.destroyed && server.destroyed) pairs.delete(pair)
      })
  })
  const set = (now: Frozen): void => {
    frozen = now
    for (const pair of pairs) pair.hold(frozen)
  }
  const cut = (): void => {
    for (const pair of pairs) pair.destroy()
  }
  return {
    port: await listen(listener),
    freeze: () => set('everything'),
    freezePresent: () => {
      for (const pair of pairs) pair.hold('everything')
    },
    freezeReplies: () => set('replies'),
    loseReplies: (share) => {
      lostShare = share
    },
    thaw: () => set('nothing'),
    cut,
    cutClients: () => {
      for (const pair of pairs) pair.destroyClient()
    },
    close: async () => {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()))
      cut()
      await closed
    },
  }
}

function joined(client: Socket, server: Socket): Pair {
  const requests = relay(client, server)
  const replies = relay(server, client)
  return {
    hold: (frozen) => {
      requests(frozen === 'everything')
      replies(frozen !== 'nothing')
    },
    destroyClient: () => void client.destroy(),
    destroy: () => {
      client.destroy()
      server.destroy()
    },
  }
}

/**
 * Passes on what one socket receives, its end included; the function that it gives holds that back,
 * or lets it go.
 */
function relay(from: Socket, to: Socket): (hold: boolean) => void {
  const waiting: (() => void)[] = []
  let held = false
  const pass = (step: () => void): void => {
    if (held) waiting.push(step)
    else step()
  }
  from.on('data', (data) => pass(() => void to.write(data)))
  from.on('end', () => pass(() => void to.end()))
  from.on('close', (broken) => pass(() => void (broken ? to.destroy() : to.end())))
  // What broke a connection is of no interest: "close" follows and is passed on.
  from.on('error', () => {})
  return (hold) => {
    held = hold
    if (!held) for (const step of waiting.splice(0)) step()
  }
}

function listen(listener: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(0, host, () => resolve((listener.address() as AddressInfo).port))
  })
}
