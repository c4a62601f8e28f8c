// DELETE /plants/{id}: what it answers, and which ids it knows.
import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/rawSocket.ts'
import { withService } from '../support/service.ts'

describe('DELETE /plants/{id}', () => {
  test('answers 204 without a body, and the plant is gone', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await service.call('POST', '/plants', { token, body: '{"id":7,"name":"x"}' })
      const answer = await service.call('DELETE', '/plants/7', { token })
      expect(answer.status).toBe(204)
      expect(answer.text).toBe('')
      expect(answer.headers.get('content-type')).toBeNull()
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect((await service.call('GET', '/plants', { token })).text).toBe('[]')
    }))

  test("answers 404 with the same bytes whether it never existed, was deleted, or is another account's", () =>
    withService(async (service) => {
      const [one, two] = [await service.tokenFor('one'), await service.tokenFor('two')]
      await service.call('POST', '/plants', { token: one, body: '{"id":1,"name":"deleted"}' })
      await service.call('DELETE', '/plants/1', { token: one })
      await service.call('POST', '/plants', { token: two, body: '{"id":2,"name":"of another"}' })
      const raw = async (id: number): Promise<string> => {
        const request = `DELETE /plants/${id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${one}\r\nConnection: close\r\n\r\n`
        return (await exchange(service.url, [request])).received.replace(
          /(?:Date|X-Request-Id): .*\r\n/gi,
          '',
        )
      }
      const answers = await Promise.all([1, 2, 3].map(raw))
      expect(answers[0]).toStartWith('HTTP/1.1 404 Not Found\r\n')
      expect(answers[0]).toEndWith('{"error":404,"message":"No plant has this id."}')
      expect(new Set(answers).size).toBe(1)
      expect((await service.call('GET', '/plants', { token: two })).text).toBe(
        '[{"name":"of another"}]',
      )
    }))

  test.each(['-9223372036854775808', '9223372036854775807', '0', '-0', '%37', '-%31'])(
    'takes the id %s',
    (id) =>
      withService(async (service) => {
        const token = await service.tokenFor('a')
        await service.call('POST', '/plants', {
          token,
          body: `{"id":${decodeURIComponent(id)},"name":"x"}`,
        })
        expect((await service.call('DELETE', `/plants/${id}`, { token })).status).toBe(204)
      }),
  )

  test.each([
    'abc',
    '1.0',
    '1e2',
    '01',
    '-01',
    '+1',
    '--1',
    '-',
    '%20',
    '1%20',
    '0x1',
    '9223372036854775808',
    '-9223372036854775809',
    '99999999999999999999999',
    '%00',
    '%ff',
    '%',
    '1%2F2',
    'null',
    '7;x',
    '１',
  ])('refuses the id %s with 400', (id) =>
    withService(async (service) => {
      const answer = await service.call('DELETE', `/plants/${id}`, {
        token: await service.tokenFor('a'),
      })
      expect(answer.status).toBe(400)
      expect(answer.text).toBe(
        '{"error":400,"message":"id must be an integer between -9223372036854775808 and 9223372036854775807, in plain decimal digits."}',
      )
    }),
  )

  test('ignores a body', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await service.call('POST', '/plants', { token, body: '{"id":7,"name":"x"}' })
      expect(
        (
          await service.call('DELETE', '/plants/7', {
            token,
            body: 'not json',
            headers: { 'Content-Type': 'text/plain' },
          })
        ).status,
      ).toBe(204)
    }))

  test('lets one of sixteen racing removers have the plant', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await service.call('POST', '/plants', { token, body: '{"id":7,"name":"x"}' })
      const answers = await Promise.all(
        Array.from({ length: 16 }, () => service.call('DELETE', '/plants/7', { token })),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([
        204,
        ...Array<number>(15).fill(404),
      ])
    }))
})
