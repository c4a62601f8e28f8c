// Who may ask what: tokens that are missing, refused or valid, and what is checked before what.

import { describe, expect, test } from 'bun:test'
import { openStore } from '../../src/stores/open.ts'
import { until } from '../support/clock.ts'
import { exchange } from '../support/rawSocket.ts'
import { withService } from '../support/service.ts'
import { storeOptions } from '../support/stores.ts'

const operations = [
  ['POST', '/plants'],
  ['GET', '/plants'],
  ['DELETE', '/plants/7'],
] as const

const missing =
  '{"error":401,"message":"A bearer token is needed: send Authorization: Bearer TOKEN."}'
const refused =
  '{"error":401,"message":"The bearer token is not valid: it is unknown, malformed, expired or revoked."}'
const challenge = 'Bearer realm="plants"'
const invalid = `${challenge}, error="invalid_token", error_description="The bearer token is unknown, malformed, expired or revoked"`

describe('a request without a bearer token', () => {
  test.each(operations)('%s %s gets 401 and a plain challenge', (method, target) =>
    withService(async (service) => {
      for (const authorization of [
        undefined,
        'Basic dXNlcjpwYXNz',
        'Digest x',
        'BearerX y',
        'Token x',
        'Bearer',
        'Bearer ',
        'bearer   ',
      ]) {
        const headers: Record<string, string> =
          authorization === undefined ? {} : { Authorization: authorization }
        const answer = await service.call(method, target, { headers })
        expect([answer.status, answer.text]).toEqual([401, missing])
        expect(answer.headers.get('www-authenticate')).toBe(challenge)
      }
    }),
  )
})

describe('a token that is not valid', () => {
  test('gets the same bytes whether it is unknown, malformed, expired or revoked', () =>
    withService(async (service) => {
      const good = await service.tokenFor('a')
      const [expired, revoked] = [
        await service.tokenFor('b', { lifetimeMs: 1000 }),
        await service.tokenFor('c'),
      ]
      const [ofRevoked] = await service.store.tokens.list('c')
      await service.store.tokens.revoke(ofRevoked?.id ?? '', service.clock.wallMs())
      service.clock.advance(1000)
      let unknown = ''
      await withService(async (foreign) => {
        unknown = await foreign.tokenFor('a')
      })
      const typo = good.slice(0, -1) + (good.endsWith('A') ? 'B' : 'A')
      const raw = async (authorization: string): Promise<string> => {
        const request = `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nConnection: close\r\n\r\n`
        return (await exchange(service.url, [request])).received.replace(
          /(?:Date|X-Request-Id): .*\r\n/gi,
          '',
        )
      }
      const tokens = [
        unknown,
        expired,
        revoked,
        typo,
        'x',
        'plants_',
        good.toLowerCase(),
        `${good} `.repeat(2),
        `${good}=`,
        `"${good}"`,
      ]
      const answers = await Promise.all(tokens.map((token) => raw(`Bearer ${token}`)))
      expect(answers[0]).toStartWith('HTTP/1.1 401 Unauthorized\r\n')
      expect(answers[0]).toContain(`WWW-Authenticate: ${invalid}\r\n`)
      expect(answers[0]).toEndWith(refused)
      expect(new Set(answers).size).toBe(1)
      expect((await service.call('GET', '/plants', { token: good })).status).toBe(200)
    }))

  test('is refused on every operation', () =>
    withService(async (service) => {
      for (const [method, target] of operations) {
        const answer = await service.call(method, target, { token: 'x' })
        expect([answer.status, answer.text]).toEqual([401, refused])
        expect(answer.headers.get('www-authenticate')).toBe(invalid)
      }
    }))

  test('is found by its check without asking the store', () =>
    withService(async (service) => {
      const good = await service.tokenFor('a')
      const { tokens } = service.store
      const asked: Uint8Array[] = []
      const find = tokens.find.bind(tokens)
      tokens.find = (hash) => {
        asked.push(hash)
        return find(hash)
      }
      const typo = good.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
      expect((await service.call('GET', '/plants', { token: typo })).status).toBe(401)
      expect(asked).toEqual([])
      expect((await service.call('GET', '/plants', { token: good })).status).toBe(200)
      expect(asked.length).toBe(1)
    }))
})

describe('a valid token', () => {
  test('is taken with the scheme in any case', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer  ']) {
        expect(
          (
            await service.call('GET', '/plants', {
              headers: { Authorization: `${scheme} ${token}` },
            })
          ).status,
        ).toBe(200)
      }
    }))

  test('is refused if it is sent twice', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const twice = `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
      expect((await exchange(service.url, [twice])).received).toStartWith('HTTP/1.1 401 ')
    }))

  test('dies when it expires', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a', { lifetimeMs: 1000 })
      expect((await service.call('GET', '/plants', { token })).status).toBe(200)
      service.clock.advance(999)
      expect((await service.call('GET', '/plants', { token })).status).toBe(200)
      service.clock.advance(1)
      expect((await service.call('GET', '/plants', { token })).status).toBe(401)
    }))

  test('dies within the time that the store states after its revocation by another connection to the store', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const other = await openStore(service.location, storeOptions)
      for (let round = 0; round < 20; round += 1)
        expect((await service.call('GET', '/plants', { token })).status).toBe(200)
      const [record] = await other.tokens.list('a')
      await other.tokens.revoke(record?.id ?? '', Date.now())
      service.clock.advance(service.store.tokens.delayMs)
      expect((await service.call('GET', '/plants', { token })).status).toBe(401)
      await other.close()
    }))

  test('without the scope gets 403 and the scope that is needed', () =>
    withService(async (service) => {
      const reader = await service.tokenFor('a', { scopes: ['plants:read'] })
      const writer = await service.tokenFor('a', { scopes: ['plants:write'] })
      const needed = { POST: 'plants:write', GET: 'plants:read', DELETE: 'plants:write' }
      for (const [method, target] of operations) {
        const answer = await service.call(method, target, {
          token: method === 'GET' ? writer : reader,
        })
        expect(answer.status).toBe(403)
        expect(answer.json).toEqual({
          error: 403,
          message: `The bearer token lacks the scope ${needed[method]}.`,
        })
        expect(answer.headers.get('www-authenticate')).toBe(
          `${challenge}, error="insufficient_scope", scope="${needed[method]}"`,
        )
      }
      expect((await service.call('GET', '/plants', { token: reader })).status).toBe(200)
      expect(
        (await service.call('POST', '/plants', { token: writer, body: '{"id":1,"name":"x"}' }))
          .status,
      ).toBe(200)
    }))

  test('has its last use noted, to the hour', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const lastUse = async (): Promise<number | null | undefined> =>
        (await service.store.tokens.list('a'))[0]?.lastUsedAtMs
      // No request waits for it.
      const isNoted = (hour: number): Promise<void> =>
        until(
          `its use at ${hour} is noted`,
          async () => (await lastUse()) === Date.UTC(2030, 0, 1, hour),
        )
      expect(await lastUse()).toBeNull()
      // From noon on.
      service.clock.advance(59 * 60_000)
      await service.call('GET', '/plants', { token })
      await isNoted(12)
      // From one to two: at the latest in the last moment.
      service.clock.advance(60_000 + 3_599_999)
      await service.call('GET', '/plants', { token })
      await isNoted(13)
    }))

  test('has the hour of its use noted at a moment of its own, not with all others', () =>
    withService(async (service) => {
      const tokens = await Promise.all(Array.from({ length: 30 }, () => service.tokenFor('a')))
      const useAll = (): Promise<unknown> =>
        Promise.all(tokens.map((token) => service.call('GET', '/plants', { token })))
      await useAll()
      await until('all are noted', async () =>
        (await service.store.tokens.list('a')).every(({ lastUsedAtMs }) => lastUsedAtMs !== null),
      )
      service.clock.advance(3_600_000)
      /** By its id, how many minutes after the full hour a use was noted first. */
      const minutes = new Map<string, number>()
      const noteUse = service.store.tokens.noteUse.bind(service.store.tokens)
      for (let minute = 0; minute < 60; minute += 5) {
        service.store.tokens.noteUse = (id, usedAtMs) => {
          expect(usedAtMs).toBe(Date.UTC(2030, 0, 1, 13))
          if (!minutes.has(id)) minutes.set(id, minute)
          return noteUse(id, usedAtMs)
        }
        await useAll()
        service.clock.advance(minute === 55 ? 299_999 : 300_000)
      }
      await useAll()
      expect(minutes.size).toBe(30)
      const together = [...minutes.values()].map(
        (minute) => [...minutes.values()].filter((other) => other === minute).length,
      )
      expect(Math.max(...together)).toBeLessThan(15)
    }))
})

describe('what is checked before what', () => {
  test('path, method, token, media type, size, syntax, schema, state', () =>
    withService(
      async (service) => {
        const token = await service.tokenFor('a')
        await service.call('POST', '/plants', { token, body: '{"id":1,"name":"x"}' })
        const status = async (
          method: string,
          target: string,
          body?: string,
          headers?: Record<string, string>,
          as?: string,
        ): Promise<number> =>
          (
            await service.call(method, target, {
              token: as,
              body,
              ...(headers === undefined ? {} : { headers }),
            })
          ).status
        const plain = { 'Content-Type': 'text/plain' }
        const long = 'x'.repeat(100)
        expect(await status('PATCH', '/nowhere', long, plain)).toBe(404)
        expect(await status('PATCH', '/plants', long, plain)).toBe(405)
        expect(await status('POST', '/plants', long, plain)).toBe(401)
        expect(await status('POST', '/plants', long, plain, token)).toBe(415)
        expect(await status('POST', '/plants', long, {}, token)).toBe(413)
        expect(await status('POST', '/plants', '{"id":"1","id":1', {}, token)).toBe(400)
        expect(await status('POST', '/plants', '{"id":"1"}', {}, token)).toBe(400)
        expect(await status('POST', '/plants', '{"id":1,"name":"y"}', {}, token)).toBe(409)
        expect(await status('DELETE', '/plants/abc')).toBe(401)
        expect(await status('GET', '/plants?limit=x')).toBe(401)
      },
      { bodyBytesMax: 64 },
    ))

  test("a stranger's body is never read", () =>
    withService(async (service) => {
      const head =
        'POST /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n'
      const { received } = await exchange(service.url, [head])
      expect(received).toStartWith('HTTP/1.1 401 ')
      const large = 'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000000\r\n\r\n'
      const refusedLarge = await exchange(service.url, [large])
      expect(refusedLarge.received).toStartWith('HTTP/1.1 401 ')
      expect(refusedLarge.closed).toBe(true)
    }))
})
