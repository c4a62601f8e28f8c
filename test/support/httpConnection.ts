// One HTTP/1.1 connection that is kept open and never sends a request twice. `fetch` may send one
// again unseen if a kept connection was closed, which would hide the failures that are looked for.
import { connect, type Socket } from 'node:net'

export interface HttpAnswer {
  readonly status: number
  /** In lower case, a line for each header. */
  readonly head: string
  readonly body: string
}

export class HttpConnection {
  readonly #url: URL
  readonly #token: string
  #socket: Socket | undefined

  constructor(url: string, token: string) {
    this.#url = new URL(url)
    this.#token = token
  }

  /**
   * One request at a time, with a body in ASCII. Rejects if there is no whole answer: then nobody
   * knows whether the request was carried out.
   */
  async request(
    method: string,
    target: string,
    body: string,
    headers: Readonly<Record<string, string>>,
    timeoutMs: number,
  ): Promise<HttpAnswer> {
    const lines = Object.entries({
      host: this.#url.host,
      authorization: `Bearer ${this.#token}`,
      'content-type': 'application/json',
      'content-length': String(body.length),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    try {
      const sent = `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
      const answer = await exchange(this.#open(), sent, timeoutMs)
      if (/^connection: close$/m.test(answer.head)) this.close()
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

  /** If the server closed the connection between two requests, that is no failure. */
  #open(): Socket {
    if (this.#socket === undefined || this.#socket.destroyed || this.#socket.readableEnded) {
      this.close()
      const { hostname, port } = this.#url
      this.#socket = connect(Number(port), hostname).setEncoding('latin1').setNoDelay(true)
      this.#socket.on('error', () => {})
    }
    return this.#socket
  }
}

function exchange(socket: Socket, sent: string, timeoutMs: number): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>()
  let received = ''
  const onData = (data: unknown): void => {
    received += String(data)
    const [, head, body = ''] = /^(.*?)\r\n\r\n(.*)$/s.exec(received) ?? []
    if (head === undefined) return
    const lower = head.toLowerCase().replaceAll('\r', '')
    const status = Number(lower.split(' ')[1])
    // What is asked for here comes in one piece, with its length.
    const length = status === 204 ? 0 : Number(/^content-length: (\d+)$/m.exec(lower)?.[1])
    if (body.length === length) resolve({ status, head: lower, body })
    else if (!(body.length < length)) reject(new Error('an answer of another length than it says'))
  }
  const onClose = (): void =>
    reject(new Error(`no answer: closed after ${received.length} characters`))
  const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  socket.on('data', onData).on('close', onClose)
  socket.write(sent)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.off('data', onData).off('close', onClose)
  })
}
