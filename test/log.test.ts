import { afterAll, describe, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../src/clock.ts'
import { openLog, printable } from '../src/log.ts'
import { temporaryFolder } from './support/service.ts'

const folder = temporaryFolder()
afterAll(() => rmSync(folder, { recursive: true }))

const entry = {
  startedMs: performance.now(),
  requestId: 'id "1"',
  method: 'GET',
  client: '127.0.0.1',
  route: '/plants',
  account: 'a\u001b[31m\n',
}
const ending = { bytes: 2, complete: true }
/** It is noon; time passes as it does. */
const noon = { ...systemClock, wallMs: () => Date.UTC(2030, 0, 1, 12) }

async function logged(
  terminal: boolean,
  write: (log: ReturnType<typeof openLog>) => void,
): Promise<string> {
  const path = join(folder, 'log')
  const descriptor = openSync(path, 'w')
  const log = openLog({ descriptor, terminal }, noon)
  write(log)
  await log.flush()
  closeSync(descriptor)
  return readFileSync(path, 'utf8')
}

describe('the log', () => {
  test('is a JSON line for each event', async () => {
    const text = await logged(false, (log) => {
      log.request(entry, 200, ending)
      log.request({ ...entry, route: undefined, account: undefined }, 404, {
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
      requestId: 'id "1"',
    })
    expect(request).not.toHaveProperty('complete')
    expect(broken).toMatchObject({ route: null, account: null, complete: false })
    expect(failure).toMatchObject({ level: 'error', message: 'It failed.', requestId: 'x' })
    expect(failure.cause).toContain('outer')
    expect(failure.cause).toContain('inner')
    expect(note).toEqual({ time: '2030-01-01T12:00:00.000Z', level: 'info', message: 'stopping' })
  })

  test('is plain text on a terminal, where control characters do nothing', async () => {
    const text = await logged(true, (log) => log.request(entry, 200, ending))
    expect(text).toMatch(
      /^[\d:]{8}\.000 GET {4}\/plants 200 [\d.]+ ms 2 B a\\u001b\[31m\\u000a 127\.0\.0\.1\n$/,
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
    // What joins the parts of an emoji does nothing else, and stays.
    expect(printable('\u{1f469}\u200d\u{1f33e}')).toBe('\u{1f469}\u200d\u{1f33e}')
  })

  test('tells a warning with its causes on one line, and the time of day where the reader is', async () => {
    const cause = new Error('outer', { cause: new Error('inner') })
    const json = JSON.parse(await logged(false, (log) => log.warn('It began.', cause)))
    expect(json).toEqual({
      time: '2030-01-01T12:00:00.000Z',
      level: 'warn',
      message: 'It began.',
      cause: 'outer because of inner',
    })
    const hours = String(new Date(noon.wallMs()).getHours()).padStart(2, '0')
    expect(await logged(true, (log) => log.warn('It began.', cause))).toBe(
      `${hours}:00:00.000 warning: It began. outer because of inner\n`,
    )
    expect(
      await logged(true, (log) => log.request(entry, undefined, { bytes: 0, complete: false })),
    ).toContain(' --- ')
  })

  test('flushes all that waits, also while an earlier write is not done', async () => {
    const path = join(folder, 'slow')
    execFileSync('mkfifo', [path])
    const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const log = openLog({ descriptor, terminal: false }, noon)
    const buffer = Buffer.alloc(1 << 20)
    // More than a pipe takes at once.
    log.note('x'.repeat(100_000))
    let flushed = false
    const flush = log.flush().then(() => {
      flushed = true
    })
    log.note('last')
    await Bun.sleep(100)
    expect(flushed).toBe(false)
    let text = ''
    const read = (): void => {
      try {
        text += buffer.toString('utf8', 0, readSync(descriptor, buffer))
      } catch {}
    }
    for (let reads = 0; reads < 100 && !flushed; reads += 1) {
      read()
      await Bun.sleep(5)
    }
    await flush
    read()
    expect(text.slice(-30)).toEndWith('"message":"last"}\n')
    closeSync(descriptor)
  })

  test('drops and counts lines rather than fill memory where its reader is behind', async () => {
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const log = openLog({ descriptor, terminal: false }, noon)
    const long = { ...entry, account: 'x'.repeat(10_000) }
    for (let n = 0; n < 2000; n += 1) log.request(long, 200, ending)
    const startedMs = performance.now()
    await Bun.sleep(50)
    // The loop was not held up by the full pipe.
    expect(performance.now() - startedMs).toBeLessThan(500)
    const buffer = Buffer.alloc(1 << 20)
    let text = ''
    for (let idle = 0; idle < 20 && !text.includes('were dropped'); ) {
      try {
        text += buffer.toString('utf8', 0, readSync(descriptor, buffer))
        idle = 0
      } catch {
        idle += 1
        await Bun.sleep(20)
      }
    }
    expect(text).toMatch(/"message":"\d+ log lines were dropped because their reader was behind"/)
    closeSync(descriptor)
  }, 20_000)
})
