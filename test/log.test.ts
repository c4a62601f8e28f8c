// The log: what its lines say, when they are written, and what happens if nobody reads them.
import { describe, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { type Log, openLog, printable } from '../src/log.ts'
import { ManualClock, until } from './support/clock.ts'
import { folderMaker } from './support/service.ts'

const folder = folderMaker()

const entry = {
  startedMs: 0,
  requestId: 'id "1"',
  method: 'GET',
  client: '127.0.0.1',
  operation: 'listPlants',
  route: '/plants',
  account: 'a\u001b[31m\n',
  tokenId: '0123456789ab',
  refusal: undefined,
}
const ending = { bytes: 2, complete: true }

/** What the log writes of `write`, at noon. */
async function logged(terminal: boolean, write: (log: Log) => void): Promise<string> {
  const path = join(folder(), 'log')
  const descriptor = openSync(path, 'w')
  const log = openLog({ descriptor, terminal }, new ManualClock())
  write(log)
  await log.flush()
  closeSync(descriptor)
  return readFileSync(path, 'utf8')
}

describe('the log', () => {
  test('is a JSON line for each event', async () => {
    const text = await logged(false, (log) => {
      log.request(entry, 200, ending)
      log.request({ ...entry, route: undefined, account: undefined, tokenId: undefined }, 404, {
        bytes: 7,
        complete: false,
      })
      log.failure('It failed.', {
        requestId: 'x',
        cause: new Error('outer', { cause: new Error('inner') }),
      })
      log.note('stopping')
    })
    const [request, broken, failure, note] = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(request).toMatchObject({
      time: '2030-01-01T12:00:00.000Z',
      level: 'info',
      status: 200,
      account: 'a\u001b[31m\n',
      tokenId: '0123456789ab',
      requestId: 'id "1"',
    })
    expect(request).not.toHaveProperty('complete')
    expect(broken).toMatchObject({ route: null, account: null, tokenId: null, complete: false })
    expect(failure).toMatchObject({ level: 'error', message: 'It failed.', requestId: 'x' })
    expect(failure.cause).toContain('outer')
    expect(failure.cause).toContain('inner')
    expect(note).toEqual({ time: '2030-01-01T12:00:00.000Z', level: 'info', message: 'stopping' })
  })

  test('is plain text on a terminal, and control characters in it do nothing', async () => {
    const text = await logged(true, (log) => log.request(entry, 200, ending))
    expect(text).toMatch(
      /^[\d:]{8}\.000 GET {4}\/plants 200 0 ms 2 B a\\u001b\[31m\\u000a 0123456789ab 127\.0\.0\.1\n$/,
    )
    expect(printable('ä\u009b')).toBe('ä\\u009b')
  })

  test('shows nothing that acts on a terminal, in neither form', async () => {
    const acting = '\u001b\u0085\u009b\u202e\u2066\u200f\u061c\u2028'
    for (const terminal of [true, false]) {
      const text = await logged(terminal, (log) => {
        log.request({ ...entry, account: acting }, 200, ending)
        log.failure(acting, { cause: new Error(acting) })
        log.warn(acting, new Error(acting))
        log.note(acting)
      })
      for (const character of acting) expect(text).not.toContain(character)
      expect(text).toContain('\\u202e')
    }
    // The character that joins the parts of an emoji does nothing else, so it stays.
    expect(printable('\u{1f469}\u200d\u{1f33e}')).toBe('\u{1f469}\u200d\u{1f33e}')
  })

  test('shows a warning with its causes on one line, and the local time of day', async () => {
    const cause = new Error('outer', { cause: new Error('inner') })
    const json = JSON.parse(await logged(false, (log) => log.warn('It began.', cause)))
    expect(json).toEqual({
      time: '2030-01-01T12:00:00.000Z',
      level: 'warn',
      message: 'It began.',
      cause: 'outer because of inner',
    })
    const hours = String(new Date(new ManualClock().wallMs()).getHours()).padStart(2, '0')
    expect(await logged(true, (log) => log.warn('It began.', cause))).toBe(
      `${hours}:00:00.000 warning: It began. outer because of inner\n`,
    )
    expect(
      await logged(true, (log) => log.request(entry, undefined, { bytes: 0, complete: false })),
    ).toContain(' --- ')
  })

  test('writes lines that come within 20 ms at once', async () => {
    const path = join(folder(), 'log')
    const descriptor = openSync(path, 'w')
    const clock = new ManualClock()
    const log = openLog({ descriptor, terminal: false }, clock)
    const written = (): string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1)
    log.note('first')
    await clock.advance(19)
    log.note('second')
    expect(written()).toEqual([])
    await clock.advance(1)
    await until('lines are written', () => written().length > 0)
    expect(written()).toHaveLength(2)
    closeSync(descriptor)
  })
})

/**
 * A log that writes to a pipe, which takes little until it is read. The pipe stays open: a write
 * may be under way when its test ends, and must not meet another file under its descriptor.
 */
function pipedLog(): {
  readonly log: Log
  readonly clock: ManualClock
  /** Takes what the pipe holds. */
  readonly read: () => string
} {
  const path = join(folder(), 'pipe')
  execFileSync('mkfifo', [path])
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const clock = new ManualClock()
  const buffer = Buffer.alloc(1 << 20)
  return {
    log: openLog({ descriptor, terminal: false }, clock),
    clock,
    read: () => {
      try {
        return buffer.toString('utf8', 0, readSync(descriptor, buffer))
      } catch {
        return ''
      }
    },
  }
}

/** A line of more than a pipe takes at once. */
const long = 'x'.repeat(100_000)

describe('a log whose reader is behind', () => {
  test('flushes all that waits, also while an earlier write is not done', async () => {
    const { log, clock, read } = pipedLog()
    /** Whether the log waits before it tries to write again. */
    const isFull = (): boolean => clock.delaysMs.includes(50)
    log.note(long)
    let flushed = false
    void log.flush().then(() => {
      flushed = true
    })
    log.note('last')
    await until('the pipe is full', isFull)
    expect(flushed).toBe(false)
    let text = ''
    await until('all is flushed', async () => {
      text += read()
      if (isFull()) await clock.advance(50)
      return flushed
    })
    expect(text + read()).toEndWith('"message":"last"}\n')
  })

  test('flushes for a second at most', async () => {
    const { log, clock } = pipedLog()
    log.note(long)
    let flushed = false
    void log.flush().then(() => {
      flushed = true
    })
    await clock.advance(999)
    expect(flushed).toBe(false)
    await clock.advance(1)
    expect(flushed).toBe(true)
  })

  test('drops and counts lines rather than fill memory', async () => {
    const { log, clock, read } = pipedLog()
    for (let line = 0; line < 200; line += 1) log.note(long)
    let text = ''
    await until('the count of dropped lines', async () => {
      await clock.advance(50)
      text += read()
      return /"message":"\d+ log lines were dropped because their reader was behind"/.test(text)
    })
  })
})
