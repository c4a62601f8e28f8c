// How many lines of the log requests without a valid token may take.
import { expect, test } from 'bun:test'
import { BlockList } from 'node:net'
import { ManualClock } from '../support/clock.ts'
import { withService } from '../support/service.ts'

const clock = new ManualClock()
const loopback = new BlockList()
loopback.addAddress('127.0.0.1')

test('the log has ten lines a second for the requests of a client without a valid token, and one for the rest', () =>
  withService(
    async (service) => {
      const token = await service.tokenFor('a')
      const from = (client: number) => ({ 'X-Forwarded-For': `203.0.113.${client}` })
      const lines = (about: string): number =>
        service.logged.filter((line) => line.startsWith('request') && line.includes(about)).length
      const counts = (): string[] =>
        service.logged.filter((line) => line.startsWith('note "requests without'))
      const refused = [
        ['GET', '/nowhere'],
        ['PUT', '/plants'],
        ['GET', '/plants'],
        ['GET', '/docs'],
      ] as const
      for (let n = 0; n < 40; n += 1) {
        const [method, target] = refused[n % refused.length] ?? ['GET', '/']
        await service.call(method, target, {
          headers: from(1),
          ...(n % 8 === 2 ? { token: 'x' } : {}),
        })
      }
      await service.call('GET', '/nowhere', { headers: from(2) })
      expect([lines('203.0.113.1"'), lines('203.0.113.2"'), counts().length]).toEqual([10, 1, 0])
      // A client with a valid token is no stranger, even if the request is refused.
      for (let n = 0; n < 20; n += 1)
        await service.call('DELETE', '/plants/7', { token, headers: from(1) })
      expect(lines('account: "a"')).toBe(20)
      await clock.advance(1000)
      expect(counts()).toEqual([
        'note "requests without a valid token that have no line: 30 in a second"',
      ])
      // Many addresses share a hundred lines.
      for (let n = 3; n < 253; n += 1) await service.call('GET', '/nowhere', { headers: from(n) })
      expect(lines('route: undefined')).toBe(6 + 1 + 100)
      await clock.advance(1000)
      expect(counts().at(-1)).toContain('no line: 150 in a second')
      await clock.advance(1000)
      expect(counts()).toHaveLength(2)
      await service.call('GET', '/nowhere', { headers: from(1) })
      expect(lines('route: undefined')).toBe(6 + 1 + 100 + 1)
    },
    {},
    { clock, trustedProxies: loopback },
  ))
