// Clients that ask for much and do not read it: what waits for them stays bounded, and nobody else
// waits.
import { describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { until } from '../support/clock.ts'
import { type Running, serve, tokenFor } from '../support/process.ts'
import { type Answer, call, folderMaker, withService } from '../support/service.ts'

const folder = folderMaker()
const readers = 1000

/** What a process takes in memory now, or took at most, in MiB. */
function memory({ process }: Running, field: 'VmRSS' | 'VmHWM'): number {
  return (
    Number(
      new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
        readFileSync(`/proc/${process.pid}/status`, 'utf8'),
      )?.[1],
    ) / 1024
  )
}

/**
 * Asks from a process of its own, on many connections, and reads nothing; ends when the work is
 * done.
 */
async function besideStalledReaders(
  url: string,
  target: string,
  token: string,
  work: () => Promise<void>,
): Promise<void> {
  const script = join(import.meta.dir, '../support/stalledReaders.ts')
  const child = spawn(process.execPath, [script, url, String(readers), target, token], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  try {
    await new Promise((resolve) => child.stdout.once('data', resolve))
    await work()
  } finally {
    child.stdin.end()
    await ended
  }
}

async function withServer(
  use: (server: Running, url: string, token: string, home: string) => Promise<void>,
): Promise<void> {
  const home = folder()
  const server = serve(home)
  const url = await server.url
  try {
    await use(server, url, await tokenFor('a', home), home)
  } finally {
    server.process.kill('SIGKILL')
    await server.finished
  }
}

/** How long each of some lists of one plant takes, in milliseconds, from the slowest on. */
async function otherTimesMs(url: string, token: string): Promise<number[]> {
  const times: number[] = []
  const endMs = performance.now() + 2000
  while (performance.now() < endMs) {
    const startedMs = performance.now()
    expect((await call(url, 'GET', '/plants?limit=1', { token })).status).toBe(200)
    times.push(performance.now() - startedMs)
    await Bun.sleep(5)
  }
  return times.sort((one, other) => other - one)
}

describe.skipIf(process.platform !== 'linux')('a thousand readers that stand still', () => {
  test.each([
    ['the script of the reference page', '/docs/reference.js', 0, ''],
    [
      'lists of many small plants',
      '/plants?limit=1000',
      1000,
      'Monstera deliciosa, of the family Araceae',
    ],
    [
      'lists of large plants that become larger as JSON',
      '/plants?limit=15',
      16,
      '\\u0001'.repeat(150_000),
    ],
    ['whole lists of many tiny plants', '/plants', 10_000, 'x'],
    ['whole lists of large plants', '/plants', 16, '\\u0001'.repeat(150_000)],
  ] as const)(
    'of %s take at most 100 MiB',
    (_what, target, plants, name) =>
      withServer(async (server, url, token, home) => {
        await createMany(url, token, plants, name)
        await call(url, 'GET', '/docs/reference.js')
        const other = await tokenFor('other', home)
        expect(
          (await call(url, 'POST', '/plants', { token: other, body: '{"id":1,"name":"x"}' }))
            .status,
        ).toBe(200)
        const idle = memory(server, 'VmRSS')
        await besideStalledReaders(url, target, token, async () => {
          const [slowest = 0] = await otherTimesMs(url, other)
          // Text that is not in use any more may wait for its collection. Nobody is cut off so
          // soon.
          const isBounded = (): boolean => memory(server, 'VmRSS') - idle < 100
          await until('they take at most 100 MiB', isBounded, 4000)
          // What is not in use any more, but not collected yet, comes on top for a moment.
          expect(memory(server, 'VmHWM') - idle).toBeLessThan(200)
          // The aim is 50 ms, which a machine that does other work too may miss.
          expect(slowest).toBeLessThan(1000)
        })
        expect((await call(url, 'GET', '/plants?limit=1', { token })).status).toBe(200)
      }),
    60_000,
  )
})

describe('a list of much text', () => {
  test('is one snapshot and exact, though it leaves in pieces', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const names = [
        '\u{1f335}'.repeat(70_000),
        `x${'\u{1f335}'.repeat(70_000)}`,
        'é"\\\n\u0001'.repeat(40_000),
        'small',
        '',
      ]
      const plants = names.map((name, index) => (index % 2 === 0 ? { name } : { name, tag: name }))
      for (const [id, plant] of plants.entries())
        expect(
          (await service.call('POST', '/plants', { token, body: JSON.stringify({ id, ...plant }) }))
            .status,
        ).toBe(200)
      for (const target of ['/plants', '/plants?limit=5', '/plants?limit=3'])
        expect((await service.call('GET', target, { token })).text).toBe(
          JSON.stringify(plants.slice(0, target.endsWith('3') ? 3 : 5)),
        )
    }))

  test('cuts off no reader that reads, however many there are', () =>
    withServer(async (_server, url, token) => {
      await createMany(url, token, 1000, 'n'.repeat(150))
      const whole = (await call(url, 'GET', '/plants', { token })).text.length
      expect(whole).toBeGreaterThan(150_000)
      const answers = await Promise.all(
        Array.from({ length: 400 }, () =>
          call(url, 'GET', '/plants', { token }).then(({ text }) => text.length),
        ),
      )
      expect(new Set(answers)).toEqual(new Set([whole]))
    }))

  test('is given to another account too, for which a reader that stands still is cut off', () =>
    withService(async (service) => {
      const [token, other] = [await service.tokenFor('a'), await service.tokenFor('other')]
      for (const as of [token, other]) await createMany(service.url, as, 16, large)
      const stalled = Array.from({ length: 6 }, () => {
        const socket = asking(service.url, token)
        socket.pause()
        return socket
      })
      await until('all have asked', () => service.underWay() === stalled.length)
      // Time passes ten times as fast, so that the five seconds of patience are soon over.
      const hurrying = setInterval(() => service.clock.advance(90), 10)
      let answer: Answer | undefined
      await until('the list is given', async () => {
        // A client that finds no room in time asks again.
        answer = await service.call('GET', '/plants', { token: other })
        return answer.status === 200
      })
      clearInterval(hurrying)
      expect(answer?.text).toHaveLength(largeListLength)
      expect(service.logged.join()).toContain('complete: false')
      for (const socket of stalled) socket.destroy()
    }))

  test.skipIf(process.platform !== 'linux')(
    'is not read for clients that have left, and leaves no memory taken behind',
    () =>
      withServer(async (server, url, token) => {
        await createMany(url, token, 16, large)
        const before = memory(server, 'VmRSS')
        for (let round = 0; round < 10; round += 1) {
          const leaving = Array.from({ length: 50 }, () => {
            const socket = asking(url, token, () => socket.destroy())
            return new Promise((resolve) => socket.on('close', resolve))
          })
          await Promise.all(leaving)
        }
        expect((await call(url, 'GET', '/plants', { token })).text).toHaveLength(largeListLength)
        expect(memory(server, 'VmRSS') - before).toBeLessThan(150)
      }),
    30_000,
  )
})

/** The name of a large plant. A list of sixteen of them is so long. */
const large = 'n'.repeat(1_000_000)
const largeListLength = 16 * 1_000_012 + 1

/** A connection that asks for the list, and then calls back. */
function asking(url: string, token: string, asked: () => void = () => {}): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`, () =>
    asked(),
  )
  return socket
}

async function createMany(url: string, token: string, count: number, name: string): Promise<void> {
  for (let from = 0; from < count; from += 200) {
    const ids = Array.from({ length: Math.min(200, count - from) }, (_, n) => from + n)
    const answers = await Promise.all(
      ids.map((id) =>
        call(url, 'POST', '/plants', { token, body: `{"id":${id},"name":"${name}"}` }),
      ),
    )
    for (const { status } of answers) expect(status).toBe(200)
  }
}
