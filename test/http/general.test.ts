// What holds for every path: methods, Host, headers, the log, pipelining, and the public pages.
import { describe, expect, test } from 'bun:test'
import { nothingDone } from '../../src/stores/failures.ts'
import { until } from '../support/clock.ts'
import { exchange, statuses } from '../support/rawSocket.ts'
import { breakDown, type TestService, withService } from '../support/service.ts'

describe('an unknown path', () => {
  test.each([
    '/plant',
    '/plants/',
    '/Plants',
    '/plants/1/2',
    '/plants/1/',
    '/livez/',
    '/metrics',
    '/admin',
    '/docs/',
    '/docs/x',
    '/%70lants',
    '/*',
  ])('%s gets 404', (path) =>
    withService(async (service) => {
      const answer = await service.call('GET', path, { token: await service.tokenFor('a') })
      expect(answer.status).toBe(404)
      expect(answer.text).toBe(
        '{"error":404,"message":"Nothing is at this path; /docs shows what there is."}',
      )
      expect((await service.call('OPTIONS', path)).status).toBe(404)
    }),
  )
})

test('a path with a doubled slash is another path', () =>
  withService(async (service) => {
    expect(
      (
        await exchange(service.url, [
          'GET //plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
        ])
      ).received,
    ).toStartWith('HTTP/1.1 404 ')
  }))

describe('methods', () => {
  const allowed = [
    ['/plants', 'POST, GET, HEAD, OPTIONS'],
    ['/plants/7', 'DELETE, OPTIONS'],
    ['/livez', 'GET, HEAD, OPTIONS'],
    ['/readyz', 'GET, HEAD, OPTIONS'],
    ['/openapi.json', 'GET, HEAD, OPTIONS'],
    ['/docs', 'GET, HEAD, OPTIONS'],
    ['/', 'GET, HEAD, OPTIONS'],
  ] as const

  test.each(allowed)('OPTIONS %s answers 204 with Allow and needs no token', (path, allow) =>
    withService(async (service) => {
      const answer = await service.call('OPTIONS', path)
      expect([answer.status, answer.text]).toEqual([204, ''])
      expect(answer.headers.get('allow')).toBe(allow)
    }),
  )

  test.each(allowed)('other methods on %s get 405 with Allow', (path, allow) =>
    withService(async (service) => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']) {
        if (allow.split(', ').includes(method)) continue
        const { received } = await exchange(service.url, [
          `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
        ])
        expect(received).toStartWith('HTTP/1.1 405 ')
        expect(received).toContain(`Allow: ${allow}\r\n`)
        if (method !== 'HEAD')
          expect(received).toEndWith(
            `{"error":405,"message":"The path takes these methods only: ${allow}."}`,
          )
      }
    }),
  )

  test('a method that nobody knows gets 501, or a closed connection', () =>
    withService(async (service) => {
      for (const method of ['PROPFIND', 'SEARCH', 'FOO', 'get']) {
        const { received, closed } = await exchange(service.url, [
          `${method} /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
        ])
        if (received === '') expect(closed).toBe(true)
        else expect(received).toEndWith('{"error":501,"message":"The method is not known."}')
      }
    }))
})

describe('HEAD', () => {
  test('answers as GET without the body', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const id of [1, 2])
        await service.call('POST', '/plants', { token, body: `{"id":${id},"name":"x"}` })
      for (const target of [
        '/plants',
        '/plants?limit=1',
        '/plants?limit=x',
        '/livez',
        '/readyz',
        '/openapi.json',
        '/docs',
        '/nowhere',
      ]) {
        const [get, head] = [
          await service.call('GET', target, { token }),
          await service.call('HEAD', target, { token }),
        ]
        expect([head.status, head.text]).toEqual([get.status, ''])
        const headers = ({ headers }: { headers: Headers }) =>
          Object.fromEntries(
            [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id'),
          )
        expect(headers(head)).toEqual(headers(get))
      }
    }))

  test('needs the token that GET needs', () =>
    withService(async (service) => {
      expect((await service.call('HEAD', '/plants')).status).toBe(401)
    }))
})

describe('Host', () => {
  test.each([
    'Host: a\r\nHost: a',
    'Host: a\r\nHost: b',
    'Host: a b',
    'Host: a/b',
    'Host: user@a',
    'Host:',
    'Host: a,b',
    'Host: a:b',
    'Host: [::1',
  ])('as %j gets 400', (host) =>
    withService(async (service) => {
      const { received } = await exchange(service.url, [
        `GET /livez HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`,
      ])
      expect(received).toStartWith('HTTP/1.1 400 ')
      expect(received).toEndWith(
        '{"error":400,"message":"Host must name this server exactly once."}',
      )
    }),
  )

  test('missing from HTTP/1.1 gets 400', () =>
    withService(async (service) => {
      const { received } = await exchange(service.url, ['GET /livez HTTP/1.1\r\n\r\n'])
      expect(received).toStartWith('HTTP/1.1 400 ')
    }))

  test.each([
    'a',
    'a:80',
    'a.b.c:65535',
    '127.0.0.1',
    '[::1]:8080',
    'a_b',
    'xn--bcher-kva.example',
    'a:',
  ])('as %s is taken', (host) =>
    withService(async (service) => {
      const { received } = await exchange(service.url, [
        `GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      ])
      expect(received).toStartWith('HTTP/1.1 200 ')
    }),
  )

  test('may be missing from HTTP/1.0, and the target may be absolute', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const authorization = `Authorization: Bearer ${token}\r\n`
      expect(
        (await exchange(service.url, [`GET /plants?limit=1 HTTP/1.0\r\n${authorization}\r\n`]))
          .received,
      ).toEndWith('\r\n\r\n[]')
      const absolute = `GET http://b/plants?limit=1 HTTP/1.1\r\nHost: a\r\n${authorization}Connection: close\r\n\r\n`
      expect((await exchange(service.url, [absolute])).received).toEndWith('\r\n\r\n[]')
    }))
})

describe('every answer', () => {
  test('is JSON whatever Accept says', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const accept of [
        'text/html',
        'application/xml;q=1, application/json;q=0',
        'nonsense',
        '',
      ]) {
        const answer = await service.call('GET', '/plants', { token, headers: { Accept: accept } })
        expect([answer.status, answer.text]).toEqual([200, '[]'])
      }
    }))

  test('carries nosniff and no server banner, and those to a caller no-store', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const [method, target] of [
        ['GET', '/plants'],
        ['DELETE', '/plants/1'],
        ['GET', '/'],
        ['GET', '/livez'],
        ['GET', '/docs'],
        ['GET', '/x'],
        ['PUT', '/plants'],
        ['OPTIONS', '/plants'],
      ] as const) {
        for (const as of [token, undefined]) {
          const { headers } = await service.call(method, target, { token: as })
          expect(headers.get('x-content-type-options')).toBe('nosniff')
          expect(headers.get('server')).toBeNull()
          expect(headers.get('x-powered-by')).toBeNull()
          if (target.startsWith('/plants')) expect(headers.get('cache-control')).toBe('no-store')
        }
      }
    }))

  test('gives back the X-Request-Id that the client sent, and logs it', () =>
    withService(async (service) => {
      const answer = await service.call('GET', '/', { headers: { 'X-Request-Id': 'trace-7' } })
      expect(answer.headers.get('x-request-id')).toBe('trace-7')
      expect(service.logged.at(-1)).toContain('requestId: "trace-7"')
    }))

  test('carries an X-Request-Id of its own if the client sent none that can be taken, and logs it', () =>
    withService(async (service) => {
      const found = new Set<string | null>()
      const sent: readonly (string | undefined)[] = ['a b', 'x'.repeat(129), '', undefined]
      for (const target of ['/', '/livez', '/plants', '/nowhere', '/docs'])
        for (const id of sent) {
          const { headers } = await service.call('GET', target, {
            headers: id === undefined ? {} : { 'X-Request-Id': id },
          })
          expect(headers.get('x-request-id')).toMatch(/^[\w-]{16}$/)
          found.add(headers.get('x-request-id'))
        }
      expect(found.size).toBe(20)
      // So many requests without a token have no more lines in this second.
      service.clock.advance(1000)
      const { headers } = await service.call('GET', '/nowhere')
      expect(service.logged.at(-1)).toContain(`requestId: "${headers.get('x-request-id')}"`)
    }))

  test('keeps the headers of requests apart that share what they read', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const id of [1, 2])
        await service.call('POST', '/plants', {
          token,
          body: `{"id":${id},"name":"Monstera deliciosa"}`,
        })
      const ids = Array.from({ length: 60 }, (_, index) =>
        index % 3 === 0 ? null : `trace-${index}`,
      )
      const answers = await Promise.all(
        ids.map((id) =>
          service.call('GET', '/plants?limit=1', {
            token,
            headers: id === null ? {} : { 'X-Request-Id': id },
          }),
        ),
      )
      const own = expect.stringMatching(/^[\w-]{16}$/)
      expect(answers.map(({ headers }) => headers.get('x-request-id'))).toEqual(
        ids.map((id) => id ?? own),
      )
      for (const { headers } of answers)
        expect(headers.get('link')).toMatch(/^<[^>]+>; rel="next"$/)
      expect((await service.call('GET', '/plants', { token })).headers.get('link')).toBeNull()
    }))
})

describe('beside the operations', () => {
  test('/livez and /readyz answer without a token', () =>
    withService(async (service) => {
      expect((await service.call('GET', '/livez')).text).toBe('{"status":"alive"}')
      expect((await service.call('GET', '/readyz')).text).toBe('{"status":"ready"}')
    }))

  test('/readyz says 503 once the store is gone, and so do the operations', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await service.store.close()
      const answer = await service.call('GET', '/readyz')
      expect(answer.status).toBe(503)
      expect(answer.headers.get('retry-after')).toBe('1')
      expect(answer.json).toEqual({ error: 503, message: expect.stringContaining('not available') })
      expect((await service.call('GET', '/livez')).status).toBe(200)
      expect((await service.call('GET', '/plants', { token })).status).toBe(503)
    }))

  test('/ leads to the reference', () =>
    withService(async (service) => {
      const answer = await service.call('GET', '/')
      expect([answer.status, answer.headers.get('location')]).toEqual([302, '/docs'])
    }))

  test('/openapi.json and /docs need no token', () =>
    withService(async (service) => {
      const document = await service.call('GET', '/openapi.json')
      expect(document.json).toMatchObject({
        openapi: '3.1.1',
        info: { version: '1.0.0', license: { name: 'MIT' } },
      })
      const page = await service.call('GET', '/docs')
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect((await service.call('GET', '/docs/reference.js')).text.length).toBeGreaterThan(
        1_000_000,
      )
    }))

  test('pages go out packed as the browser takes them, and not at all if it has them', () =>
    withService(async (service) => {
      const { text: html } = await service.call('GET', '/docs')
      const script = `/${/src="(docs\/reference\.js\?v=[^"]+)"/.exec(html)?.[1]}`
      for (const target of [
        '/openapi.json',
        '/docs',
        '/docs/start.js',
        '/docs/reference.js',
        script,
      ]) {
        const plain = await service.call('GET', target, {
          headers: { 'Accept-Encoding': 'identity' },
        })
        const etag = plain.headers.get('etag') ?? ''
        expect(etag).toMatch(/^W\/"[^"]+"$/)
        expect(plain.headers.get('vary')).toBe('accept-encoding')
        expect(plain.headers.get('cache-control')).toBe(
          target === script ? 'public, max-age=31536000, immutable' : 'no-cache',
        )
        for (const [accepted, encoding] of [
          ['gzip, deflate, br', 'br'],
          ['GZIP;q=0.5, br;q=0', 'gzip'],
          ['gzip', 'gzip'],
          ['br;q=0.0, deflate', null],
        ] as const) {
          const packed = await service.call('GET', target, {
            headers: { 'Accept-Encoding': accepted },
          })
          expect([target, accepted, packed.headers.get('content-encoding')]).toEqual([
            target,
            accepted,
            encoding,
          ])
          expect(packed.text === plain.text).toBe(true)
        }
        for (const known of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
          const answer = await service.call('GET', target, { headers: { 'If-None-Match': known } })
          expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([304, '', etag])
        }
        expect(
          (await service.call('GET', target, { headers: { 'If-None-Match': '"other"' } })).status,
        ).toBe(200)
      }
    }))
})

const diskGone = nothingDone(new Error('the disk is gone'))

/** What was logged of outages. */
function outages({ logged }: TestService): string[] {
  return logged.filter((line) => /again|began/.test(line))
}

describe('the log', () => {
  test('has one line for each request, with everything but the token', () =>
    withService(async (service) => {
      const token = await service.tokenFor('gardener')
      await service.call('POST', '/plants', { token, body: '{"id":1,"name":"x"}' })
      await service.call('DELETE', '/plants/2', { token })
      await service.call('GET', '/nowhere')
      const requests = service.logged.filter((line) => line.startsWith('request'))
      expect(requests).toHaveLength(3)
      const [created, missing, nowhere] = requests
      expect(created).toContain('method: "POST"')
      for (const part of [
        'route: "/plants"',
        'status: 200',
        'bytes: 12',
        'account: "gardener"',
        `tokenId: "${(await service.store.tokens.list())[0]?.id}"`,
        'complete: true',
      ])
        expect(created).toContain(part)
      for (const part of ['route: "/plants/{id}"', 'status: 404']) expect(missing).toContain(part)
      for (const part of [
        'route: undefined',
        'account: undefined',
        'tokenId: undefined',
        'status: 404',
      ])
        expect(nowhere).toContain(part)
      expect(service.logged.join()).not.toContain(token)
      expect(service.logged.join()).not.toContain(token.slice(7, 20))
      for (const line of requests) expect(line).toContain('client: "127.0.0.1"')
    }))

  test('has no line for a probe', () =>
    withService(async (service) => {
      for (const target of ['/livez', '/readyz'])
        expect((await service.call('GET', target)).status).toBe(200)
      expect(service.logged.filter((line) => line.startsWith('request'))).toEqual([])
    }))

  test('tells of an outage once when it begins and once, with a count, when it has ended', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const mend = breakDown(service.store.plants, 'list', diskGone)
      for (let n = 0; n < 5; n += 1)
        expect((await service.call('GET', '/plants', { token })).status).toBe(503)
      expect(outages(service)).toEqual([
        expect.stringMatching(/^warn .*reads began to fail".*the disk is gone/s),
      ])
      mend()
      // A success right after a failure may be one of a few while the outage goes on.
      expect((await service.call('GET', '/plants', { token })).status).toBe(200)
      expect(outages(service)).toHaveLength(1)
      service.clock.advance(1000)
      // No client need ask: a service that is ready reads and writes.
      expect((await service.call('GET', '/readyz')).status).toBe(200)
      expect(outages(service).slice(1)).toEqual(['note "reads work again after 1 s; 5 failed"'])
    }))

  test('does not tell that an outage has ended because of an answer that does not ask the store', () =>
    withService(async (service) => {
      const mend = breakDown(service.store, 'ready', diskGone)
      expect((await service.call('GET', '/readyz')).status).toBe(503)
      service.clock.advance(60_000)
      for (const target of ['/livez', '/docs', '/openapi.json'])
        expect((await service.call('GET', target)).status).toBe(200)
      expect(outages(service)).toHaveLength(1)
      mend()
      expect((await service.call('GET', '/readyz')).status).toBe(200)
      expect(outages(service).slice(1)).toEqual([
        'note "probes of readiness work again after 60 s; 1 failed"',
      ])
    }))
})

describe('pipelined requests', () => {
  // Such an answer is not there at once, and the runtime then ends the connection.
  test('behind one that asks the store end the connection rather than mix answers', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const one = `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
      const { received } = await exchange(service.url, [
        `${one}GET /livez HTTP/1.1\r\nHost: x\r\n\r\n${one.replace(token, 'x')}`,
      ])
      expect([[], [200]]).toContainEqual(statuses(received))
    }))

  test('behind a write end the connection rather than mix answers; the write counts once', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const body = '{"id":1,"name":"x"}'
      const one = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      const { received, closed } = await exchange(service.url, [one + one])
      const found = statuses(received)
      if (!closed) expect(found).toEqual([200, 409])
      expect(found.filter((status) => status === 200).length).toBeLessThanOrEqual(1)
      const list = async (): Promise<string> =>
        (await service.call('GET', '/plants', { token })).text
      await until('the plant is there', async () => (await list()) !== '[]')
      expect(await list()).toBe('[{"name":"x"}]')
    }))
})
