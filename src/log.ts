// The log: a line for each request and a few for the life of the service. JSON for programs, plain
// text on a terminal. A request only makes the text of its line; lines are written later, in bulk.
import { write } from 'node:fs'
import { type Clock, dateOf } from './clock.ts'

/**
 * A request while it is under way. `client` is an address, `operation` a name of the contract,
 * `route` the path template, `account` that of the caller, `tokenId` the public id of the caller's
 * token, `refusal` why it failed.
 */
export interface RequestEntry {
  readonly startedMs: number
  readonly requestId: string
  readonly method: string
  readonly client: string | undefined
  operation: string | undefined
  route: string | undefined
  account: string | undefined
  tokenId: string | undefined
  refusal: string | undefined
}

export interface Log {
  /**
   * One line when a request has ended. `status` is absent if nothing was sent, `complete` is false
   * if the answer broke off.
   */
  request(
    entry: RequestEntry,
    status: number | undefined,
    ending: { readonly bytes: number; readonly complete: boolean },
  ): void
  /** A failure of the service, with its cause, for the operator alone. */
  failure(message: string, details: { readonly requestId?: string; readonly cause: unknown }): void
  /** Something the operator should look at, with its cause. */
  warn(message: string, cause?: unknown): void
  /** Something the operator should know. */
  note(message: string): void
  /** Writes the lines that wait. Gives up if their reader does not take them within a second. */
  flush(): Promise<void>
}

/** How long a line may wait for others to be written with it. */
const gatherMs = 20
/** How long to wait before the next try if the reader of a pipe is behind. */
const retryMs = 50
/** How long a flush waits for that reader. */
const flushMs = 1000
/** Most text that waits, in UTF-16 code units. Lines beyond it are dropped and counted. */
const waitingMax = 4 * 1024 * 1024

/** Opens the log on a file descriptor, in plain text if that is a terminal. */
export function openLog(
  { descriptor, terminal }: { readonly descriptor: number; readonly terminal: boolean },
  clock: Clock,
): Log {
  const format = terminal ? plainFormat(clock) : jsonFormat(clock)
  const lines = new LineWriter(descriptor, clock, (dropped) =>
    format.note(`${dropped} log lines were dropped because their reader was behind`),
  )
  return {
    request: (entry, status, ending) => lines.add(format.request(entry, status, ending)),
    failure: (message, details) => lines.add(format.failure(message, details)),
    warn: (message, cause) => lines.add(format.warn(message, cause)),
    note: (message) => lines.add(format.note(message)),
    flush: () => lines.flush(),
  }
}

/** The line of each kind of entry. */
type Format = {
  readonly [Kind in Exclude<keyof Log, 'flush'>]: (...of: Parameters<Log[Kind]>) => string
}

function jsonFormat(clock: Clock): Format {
  let atMs = Number.NaN
  let text = ''
  // The time is formatted once a millisecond at most, because every request pays for its line.
  const time = (): string => {
    const nowMs = clock.wallMs()
    if (nowMs !== atMs) {
      atMs = nowMs
      text = dateOf(nowMs).toISOString()
    }
    return text
  }
  return {
    // Not JSON.stringify, for the same reason. Only texts that a client chose need escaping.
    request: (
      { startedMs, requestId, method, client, route, account, tokenId },
      status,
      { bytes, complete },
    ) =>
      `{"time":"${time()}","level":"info","method":${quoted(method)},"route":${quoted(route)},"status":${status ?? null},` +
      `"durationMs":${durationMs(clock.monotonicMs() - startedMs)},"bytes":${bytes},"account":${quoted(account)},"tokenId":${quoted(tokenId)},"client":${quoted(client)},"requestId":${quoted(requestId)}` +
      `${complete ? '' : ',"complete":false'}}\n`,
    failure: (message, { requestId, cause }) =>
      line({ time: time(), level: 'error', message, requestId, cause: describe(cause) }),
    warn: (message, cause) => line({ time: time(), level: 'warn', message, cause: reasons(cause) }),
    note: (message) => line({ time: time(), level: 'info', message }),
  }
}

function plainFormat(clock: Clock): Format {
  /** The local time of day, to the millisecond. */
  const time = (): string => {
    const now = dateOf(clock.wallMs())
    const [hours, minutes, seconds] = [now.getHours(), now.getMinutes(), now.getSeconds()].map(
      (part) => String(part).padStart(2, '0'),
    )
    return `${hours}:${minutes}:${seconds}.${String(now.getMilliseconds()).padStart(3, '0')}`
  }
  return {
    request: (
      { startedMs, method, client, route, account, tokenId = '' },
      status,
      { bytes, complete },
    ) =>
      `${time()} ${method.padEnd(6)} ${printable(route ?? '(no route)')} ${status ?? '---'} ${durationMs(clock.monotonicMs() - startedMs)} ms ${bytes} B` +
      `${account === undefined ? '' : ` ${printable(`${account} ${tokenId}`)}`} ${printable(client ?? '')}${complete ? '' : ' (broken off)'}\n`,
    failure: (message, { requestId, cause }) =>
      `${time()} ${printable(message)}${requestId === undefined ? '' : ` [${requestId}]`}\n${describe(cause).split('\n').map(printable).join('\n')}\n`,
    warn: (message, cause) =>
      `${time()} warning: ${printable([message, reasons(cause)].filter(Boolean).join(' '))}\n`,
    note: (message) => `${time()} ${printable(message)}\n`,
  }
}

/** An object as a line of JSON. */
function line(content: Readonly<Record<string, unknown>>): string {
  return `${printable(JSON.stringify(content))}\n`
}

/** Text in JSON. Most of it needs no escaping. */
function quoted(text: string | undefined): string {
  if (text === undefined) return 'null'
  return /^[\w {}/.:-]*$/.test(text) ? `"${text}"` : printable(JSON.stringify(text))
}

/** Milliseconds to the microsecond. */
function durationMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/**
 * Characters that act on a terminal instead of being shown: control characters, changes of the
 * direction of text, line ends.
 */
const acting = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** Text that is safe to show on a terminal, on one line. */
export function printable(text: string): string {
  return text.replace(
    acting,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** An error's message and those of its causes, on one line and without stacks. */
function reasons(cause: unknown): string | undefined {
  if (!(cause instanceof Error)) return cause === undefined ? undefined : String(cause)
  const { message, cause: deeper } = cause
  return deeper === undefined ? message : `${message} because of ${reasons(deeper)}`
}

/** An error's stack and those of its causes. */
export function describe(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const stack = cause.stack ?? String(cause)
  return cause.cause === undefined ? stack : `${stack}\nbecause of ${describe(cause.cause)}`
}

/** Writes lines in bulk, off the event loop, one write at a time, and keeps a bounded queue. */
class LineWriter {
  readonly #descriptor: number
  readonly #clock: Clock
  readonly #droppedLine: (dropped: number) => string
  #waiting = ''
  #dropped = 0
  #underWay: Buffer | undefined
  #gathering = false
  #flushed: (() => void) | undefined

  constructor(descriptor: number, clock: Clock, droppedLine: (dropped: number) => string) {
    this.#clock = clock
    this.#descriptor = descriptor
    this.#droppedLine = droppedLine
  }

  add(line: string): void {
    if (this.#waiting.length > waitingMax) {
      this.#dropped += 1
      return
    }
    this.#waiting += line
    if (this.#underWay !== undefined || this.#gathering) return
    this.#gathering = true
    this.#clock.after(gatherMs, () => this.#writeNext())
  }

  flush(): Promise<void> {
    return new Promise((resolve) => {
      this.#flushed = resolve
      this.#clock.after(flushMs, resolve)
      this.#writeNext()
    })
  }

  #writeNext(): void {
    this.#gathering = false
    // A write that is under way comes back here when it is done.
    if (this.#underWay !== undefined) return
    if (this.#waiting === '') {
      this.#flushed?.()
      return
    }
    const dropped = this.#dropped === 0 ? '' : this.#droppedLine(this.#dropped)
    this.#dropped = 0
    this.#write(Buffer.from(this.#waiting + dropped))
    this.#waiting = ''
  }

  #write(bytes: Buffer): void {
    this.#underWay = bytes
    write(this.#descriptor, bytes, (error, written) => {
      if (error?.code === 'EAGAIN') {
        this.#clock.after(retryMs, () => this.#write(bytes))
        return
      }
      this.#underWay = undefined
      // Any other error means that nobody reads the log any more; the service goes on without it.
      if (error === null && written < bytes.length) this.#write(bytes.subarray(written))
      else this.#writeNext()
    })
  }
}
