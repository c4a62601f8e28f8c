// Bytes that no honest client sends. Each gets a refusal or a closed connection, and none keeps
// the next client waiting.
import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:net'
import { exchange, statuses } from '../support/rawSocket.ts'
import { type TestService, withService } from '../support/service.ts'

const plant = '{"id":1,"name":"x"}'

/** Sends a request; the service must refuse it, store nothing, and go on serving. */
async function refused(
  request: (token: string) => readonly (string | number)[],
  allowed: readonly number[],
): Promise<void> {
  await withService(async (service) => {
    const token = await service.tokenFor('a')
    const { received, closed } = await exchange(service.url, request(token))
    const found = statuses(received)
    expect(found.length > 0 || closed).toBe(true)
    for (const status of found) expect(allowed).toContain(status)
    await expectEmptyAndAlive(service, token)
  })
}

async function expectEmptyAndAlive(service: TestService, token: string): Promise<void> {
  const answer = await service.call('GET', '/plants', { token })
  expect([answer.status, answer.text]).toEqual([200, '[]'])
}

function head(token: string, ...lines: string[]): string {
  return [
    'POST /plants HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${token}`,
    ...lines,
    '',
    '',
  ].join('\r\n')
}

describe('lengths', () => {
  test('two that conflict', () =>
    refused((token) => [head(token, 'Content-Length: 19', 'Content-Length: 20') + plant], [400]))

  test('beside chunked encoding', () =>
    refused(
      (token) => [
        `${head(token, 'Content-Length: 19', 'Transfer-Encoding: chunked')}13\r\n${plant}\r\n0\r\n\r\n`,
      ],
      [400],
    ))

  test.each(['-1', '+19', '0x13', '19, 19', '1e2', ' ', '99999999999999999999999'])(
    'of %p',
    (length) => refused((token) => [head(token, `Content-Length: ${length}`) + plant], [400, 413]),
  )

  test.each(['gzip, chunked', 'chunked, identity', 'xchunked', 'chunked, chunked'])(
    'hidden by Transfer-Encoding: %s',
    (encoding) =>
      refused(
        (token) => [`${head(token, `Transfer-Encoding: ${encoding}`)}13\r\n${plant}\r\n0\r\n\r\n`],
        [400, 501],
      ),
  )

  test.each([
    'zz\r\nabc\r\n0\r\n\r\n',
    '-1\r\nabc\r\n0\r\n\r\n',
    'ffffffffffffffffff\r\nabc',
    '3\r\nabcdef\r\n0\r\n\r\n',
  ])('in chunks as %j', (chunks) =>
    refused((token) => [head(token, 'Transfer-Encoding: chunked') + chunks], [400, 413]),
  )
})

describe('lines', () => {
  test.each([
    'GET /plants HTTP/1.1\nHost: x\n\n',
    'GET /plants HTTP/1.1\r\nHost: x\nX: y\r\n\r\n',
    'GET /plants\r\n\r\n',
    'GET  /plants  HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /plants HTTP/2.0\r\nHost: x\r\n\r\n',
    'GET /plants HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n',
    'GET /plants HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\r\n',
    'GET /plants HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n',
    'GET /plants HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n',
    '\r\n\r\n\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '\0'.repeat(100),
  ])('as %j', (bytes) => refused(() => [bytes], [400, 401, 505]))

  test('longer than any header may be', () =>
    refused((token) => [head(token, `X: ${'x'.repeat(100_000)}`)], [431, 400]))

  test('more than any request needs', () =>
    refused(
      (token) => [head(token, ...Array.from({ length: 2000 }, (_, n) => `X-${n}: y`))],
      [431, 400],
    ))

  test('with an endless target', () =>
    refused(() => [`GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`], [431, 414, 400]))
})

describe('a hundred silent connections', () => {
  test('keep nobody waiting', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const silent = Array.from({ length: 100 }, () =>
        connect(Number(new URL(service.url).port), '127.0.0.1'),
      )
      for (const socket of silent) socket.write('GET /pl')
      await Promise.all(silent.map((socket) => once(socket, 'connect')))
      await expectEmptyAndAlive(service, token)
      for (const socket of silent) socket.destroy()
    }))
})

describe('a body that is too large', () => {
  test('is answered before it has come, and the connection ends', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const { received, closed } = await exchange(service.url, [
        head(token, 'Content-Length: 5000000'),
        50,
        'x'.repeat(1000),
      ])
      expect(received).toStartWith('HTTP/1.1 413 ')
      expect(received).toEndWith(
        '{"error":413,"message":"The body must not exceed 1048576 bytes."}',
      )
      expect(closed).toBe(true)
    }))

  test('is cut off in chunks as soon as it exceeds the limit', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
      const { received, closed } = await exchange(service.url, [
        head(token, 'Transfer-Encoding: chunked'),
        ...Array<string>(20).fill(chunk),
      ])
      expect(received).toStartWith('HTTP/1.1 413 ')
      expect(closed).toBe(true)
    }))
})

// The runtime alone keeps this time, and looks every four seconds: the tests wait side by side.
describe.concurrent('a connection that stands still for eight seconds', () => {
  const slowService = { idleSeconds: 8 }

  test(
    'is cut off, although headers trickle in',
    () =>
      withService(async (service) => {
        const trickle = Array.from({ length: 36 }, () => ['x', 500]).flat()
        const start = 'GET /plants HTTP/1.1\r\nHost: x\r\nX: '
        const { received, closed } = await exchange(service.url, [start, ...trickle])
        expect(closed).toBe(true)
        expect(statuses(received).filter((status) => status < 400)).toEqual([])
      }, slowService),
    30_000,
  )

  test(
    'is cut off within a body, of which nothing is stored, but not while the body goes on coming',
    () =>
      withService(async (service) => {
        const token = await service.tokenFor('a')
        const name = 'n'.repeat(20_000)
        const body = `{"id":1,"name":"${name}"}`
        const request = head(token, 'Connection: close', `Content-Length: ${body.length}`)
        const slowly = [...Array(20).keys()].flatMap((part) => [
          600,
          body.slice(part * 1100, (part + 1) * 1100),
        ])
        const [steady, ...still] = await Promise.all([
          exchange(service.url, [request, ...slowly]),
          exchange(service.url, [request, body.slice(0, 5000)]),
          exchange(service.url, [head(token, 'Content-Length: 1000') + plant]),
        ])
        expect(statuses(steady.received)).toEqual([200])
        expect(steady.elapsedMs).toBeGreaterThan(10_000)
        for (const { received, closed } of still) expect([received, closed]).toEqual(['', true])
        expect((await service.call('GET', '/plants', { token })).text).toBe(`[{"name":"${name}"}]`)
        // The log says what was sent: nothing.
        const lines = service.logged.filter((line) => line.includes('complete: false'))
        expect(lines).toHaveLength(2)
        for (const line of lines)
          for (const part of ['status: undefined', 'bytes: 0']) expect(line).toContain(part)
        expect(service.logged.some((line) => line.startsWith('failure'))).toBe(false)
      }, slowService),
    30_000,
  )
})
