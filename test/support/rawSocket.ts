// Bytes on a socket, for requests that no HTTP client would send.
import { connect, type Socket } from 'node:net'

export interface RawExchange {
  /** Everything the server sent, as Latin-1 text. */
  readonly received: string
  /** Whether the server ended the connection, rather than let `patienceMs` pass. */
  readonly closed: boolean
  readonly elapsedMs: number
}

/** How long the server may take to end a connection. */
const patienceMs = 20_000

/**
 * Sends parts with pauses (numbers, in milliseconds) between them, and waits until the server ends
 * the connection.
 */
export function exchange(url: string, parts: readonly (string | number)[]): Promise<RawExchange> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const startedMs = performance.now()
    const socket = connect(Number(port), hostname)
    let received = ''
    let settled = false
    const finish = (closed: boolean): void => {
      if (settled) return
      settled = true
      socket.destroy()
      resolve({ received, closed, elapsedMs: performance.now() - startedMs })
    }
    const timer = setTimeout(() => finish(false), patienceMs)
    const ended = (): void => {
      clearTimeout(timer)
      finish(true)
    }
    socket.on('data', (data) => {
      received += data.toString('latin1')
    })
    socket.on('end', ended)
    socket.on('close', ended)
    socket.on('error', ended)
    void (async () => {
      for (const part of parts) {
        if (typeof part === 'number') await Bun.sleep(part)
        else if (!socket.destroyed) socket.write(part, 'latin1')
      }
    })()
  })
}

/** What an unfinished request still owes. */
export const unfinishedBytes = 999

/**
 * A client that begins to send a plant and does not go on. When this resolves, the service has read
 * what was sent.
 */
export async function unfinishedRequest(url: string, token: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  const head = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${1 + unfinishedBytes}\r\n\r\n`
  await new Promise<void>((resolve) => socket.write(`${head}{`, () => resolve()))
  // A later request is answered, so this one was read.
  await fetch(`${url}/livez`)
  return socket
}

/** The status codes of the answers in what was received. */
export function statuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
}
