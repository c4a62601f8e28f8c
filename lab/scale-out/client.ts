// One HTTP/1.1 connection that is kept open and never sends a request twice: what `fetch` may do
// unseen where a kept connection was closed, which would hide the failures that are looked for.
import { connect, type Socket } from 'node:net'

export interface HttpAnswer {
  readonly status: number
  readonly body: string
}

/** The request got no whole answer: whether it was carried out is not known. */
export class NoAnswer extends Error {}

export class HttpConnection {
  readonly #host: string
  readonly #port: number
  #socket: Socket | undefined

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.#host = hostname
    this.#port = Number(port)
  }

  /** One request at a time. The body is ASCII. Rejects with NoAnswer. */
  async request(
    method: string,
    target: string,
    headers: Readonly<Record<string, string>>,
    body: string,
    timeoutMs: number,
  ): Promise<HttpAnswer> {
    const socket = this.#open()
    const lines = Object.entries({
      ...headers,
      host: `${this.#host}:${this.#port}`,
      'content-length': String(body.length),
    })
    const sent = `${method} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
    try {
      const { answer, closes } = await exchange(socket, sent, timeoutMs)
      if (closes) this.close()
      return answer
    } catch (error) {
      this.close()
      throw error
    }
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  /** A connection that was closed while nothing was under way is no failure: it is made anew. */
  #open(): Socket {
    if (this.#socket === undefined || this.#socket.destroyed || this.#socket.readableEnded) {
      this.#socket?.destroy()
      this.#socket = connect(this.#port, this.#host).setEncoding('latin1').setNoDelay(true)
      this.#socket.on('error', () => {})
    }
    return this.#socket
  }
}

interface Exchanged {
  readonly answer: HttpAnswer
  /** Whether the server ends the connection with this answer. */
  readonly closes: boolean
}

function exchange(socket: Socket, sent: string, timeoutMs: number): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    let received = ''
    const settle = (finish: () => void): void => {
      clearTimeout(timer)
      socket.off('data', onData).off('close', onClose)
      finish()
    }
    const timer = setTimeout(
      () => settle(() => reject(new NoAnswer(`nothing within ${timeoutMs} ms`))),
      timeoutMs,
    )
    const onClose = (): void =>
      settle(() => reject(new NoAnswer(`closed after ${received.length} characters`)))
    const onData = (data: unknown): void => {
      received += String(data)
      const exchanged = whole(received)
      if (exchanged !== undefined) settle(() => resolve(exchanged))
    }
    socket.on('data', onData).on('close', onClose)
    socket.write(sent)
  })
}

/** The answer, once all of it is there. */
function whole(received: string): Exchanged | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const head = received.slice(0, headEnd).toLowerCase()
  const rest = received.slice(headEnd + 4)
  const status = Number(head.split(' ')[1])
  const body = bodyOf(head, rest, status)
  return body === undefined
    ? undefined
    : { answer: { status, body }, closes: /^connection: close$/m.test(head.replaceAll('\r', '')) }
}

function bodyOf(head: string, rest: string, status: number): string | undefined {
  if (status === 204) return ''
  if (head.includes('transfer-encoding: chunked'))
    return rest.endsWith('0\r\n\r\n') ? unchunked(rest) : undefined
  const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
  return rest.length >= length ? rest.slice(0, length) : undefined
}

function unchunked(rest: string): string {
  let body = ''
  for (let at = 0; at < rest.length; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const length = Number.parseInt(rest.slice(at, lineEnd), 16)
    if (!(length > 0)) break
    body += rest.slice(lineEnd + 2, lineEnd + 2 + length)
    at = lineEnd + 2 + length + 2
  }
  return body
}
