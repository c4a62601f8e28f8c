// No failure tells a caller anything of the inside.
import { describe, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store.ts'
import { breakDown, withService } from '../support/service.ts'

const inside =
  /sqlite|select|insert|database|\bat .*\.ts|node_modules|\/(?:home|root|tmp|work|usr)\/|ENOENT|errno|Error:|undefined|\[object|secret/i

const defect = new TypeError('SQLITE_CORRUPT: secret select * from tokens at /root/secret.ts:1')

describe('a defect', () => {
  test.each([
    ['a create', 'POST', '/plants', ({ plants }: Store) => breakDown(plants, 'create', defect)],
    ['a list', 'GET', '/plants', ({ plants }: Store) => breakDown(plants, 'list', defect)],
    ['a delete', 'DELETE', '/plants/1', ({ plants }: Store) => breakDown(plants, 'delete', defect)],
    [
      'the search for a token',
      'GET',
      '/plants',
      ({ tokens }: Store) => breakDown(tokens, 'find', defect),
    ],
    ['the readiness', 'GET', '/readyz', (store: Store) => breakDown(store, 'ready', defect)],
  ] as const)(
    'in %s gets 500, says nothing, and is logged once with its cause',
    (_, method, target, breakIn) =>
      withService(async (service) => {
        const token = await service.tokenFor('a')
        breakIn(service.store)
        const answer = await service.call(method, target, {
          token,
          body: method === 'POST' ? '{"id":1,"name":"x"}' : undefined,
        })
        expect([answer.status, answer.text]).toEqual([
          500,
          '{"error":500,"message":"The service failed to answer."}',
        ])
        const failures = service.logged.filter((line) => line.startsWith('failure'))
        expect(failures).toHaveLength(1)
        expect(failures[0]).toContain('SQLITE_CORRUPT')
        expect(failures[0]).not.toContain(token)
      }),
  )
})

describe('refusals', () => {
  test('carry no internals, no token and no path, whatever they refuse', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const attempts: [string, string, string | undefined][] = [
        ['POST', '/plants', ''],
        ['POST', '/plants', '{'],
        ['POST', '/plants', '{"id":{}}'],
        ['POST', '/plants', `{"id":1,"name":"${'\\u0000'}"}`],
        ['POST', '/plants', `{"${token}":1,"${token}":2}`],
        ['POST', '/plants', '[[[['],
        ['GET', `/plants?limit=${token}`, undefined],
        ['GET', `/plants?after=${token}`, undefined],
        ['DELETE', `/plants/${token}`, undefined],
        ['DELETE', '/plants/1', undefined],
        ['GET', `/${token}`, undefined],
        ['PUT', '/plants', undefined],
      ]
      for (const [method, target, body] of attempts) {
        for (const as of [token, `${token}x`, undefined]) {
          const { status, text, headers } = await service.call(method, target, { token: as, body })
          expect(status).toBeWithin(400, 500)
          expect(text).not.toMatch(inside)
          expect(text).not.toContain(token)
          expect(JSON.stringify([...headers])).not.toContain(token)
        }
      }
    }))
})
