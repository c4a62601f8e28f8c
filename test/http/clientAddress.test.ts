// The client's address in the log: behind trusted proxies it is what they say, and nobody else is
// believed.
import { describe, expect, test } from 'bun:test'
import type { BlockList } from 'node:net'
import { readSettings, UsageProblems } from '../../src/cli/settings.ts'
import { type TestService, withService } from '../support/service.ts'

function trusted(list: string): BlockList | undefined {
  return readSettings(['trust-proxy'], [], ['--trust-proxy', list], {}).values['trust-proxy']
}

/** The client in the log's line of a request with this header. */
async function clientOf(service: TestService, forwardedFor: string): Promise<string> {
  await service.call('GET', '/docs', { headers: { 'X-Forwarded-For': forwardedFor } })
  const [, client = ''] = /client: (.*),/.exec(service.logged.at(-1) ?? '') ?? []
  return JSON.parse(client)
}

describe('behind trusted proxies', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8:5::9', '2001:db8:5::9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['203.0.113.9:41234', '203.0.113.9'],
    ['[2001:db8:5::9]:41234', '2001:db8:5::9'],
    ['[2001:db8:5::9]', '2001:db8:5::9'],
    // The client wrote the first one itself.
    ['198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['203.0.113.9 ,::ffff:10.1.2.3,2001:db8::7', '203.0.113.9'],
    // All of them are proxies: a request of the outermost.
    ['10.0.0.1, 10.0.0.2', '10.0.0.1'],
    // What is no address is not believed, nor what stands left of it.
    ['', '127.0.0.1'],
    ['203.0.113.9,', '127.0.0.1'],
    ['203.0.113.9, unknown', '127.0.0.1'],
    ['203.0.113.9, <b>", 10.1.2.3', '10.1.2.3'],
    ['203.0.113.256', '127.0.0.1'],
    ['203.0.113.9:x', '127.0.0.1'],
    ['[203.0.113.9', '127.0.0.1'],
    [',,,,,,'.repeat(1000), '127.0.0.1'],
  ])('%p is %p', (header, client) =>
    withService(
      async (service) => expect(await clientOf(service, header)).toBe(client),
      {},
      { trustedProxies: trusted('loopback, 10.0.0.0/8,2001:db8::7') },
    ),
  )

  test('on IPv6, and on both families at once, an address is in its own form', async () => {
    for (const [host, url, peer] of [
      ['::1', 'http://[::1]', '::1'],
      ['::', 'http://127.0.0.1', '127.0.0.1'],
    ])
      for (const list of ['loopback', '192.0.2.1'])
        await withService(
          async ({ url: own, logged }) => {
            const { port } = new URL(own)
            const headers = { 'X-Forwarded-For': '203.0.113.9' }
            await (await fetch(`${url}:${port}/docs`, { headers })).text()
            const client = list === 'loopback' ? '203.0.113.9' : peer
            expect(logged.at(-1)).toContain(`client: "${client}"`)
          },
          {},
          { host: host ?? '', trustedProxies: trusted(list) },
        )
  })
})

test.each([undefined, '10.0.0.0/8,::1,127.0.0.2'])(
  'a peer that is not trusted (by %p) is not believed',
  (list) =>
    withService(
      async (service) => expect(await clientOf(service, '203.0.113.9')).toBe('127.0.0.1'),
      {},
      { trustedProxies: list === undefined ? undefined : trusted(list) },
    ),
)

describe('--trust-proxy', () => {
  test.each([
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '::1/129',
    'fe80::1%eth0',
    '10.0.0.1,',
    '10.0.0.1 10.0.0.2',
    'loopbacks',
    '-1',
  ])('refuses %p', (list) => {
    const mustBe = 'IP addresses, ranges such as 10.0.0.0/8, or loopback, separated by commas'
    expect(() => readSettings(['trust-proxy'], [], [], { PLANTS_TRUST_PROXY: list })).toThrow(
      new UsageProblems([`PLANTS_TRUST_PROXY must be ${mustBe}, not ${JSON.stringify(list)}.`]),
    )
  })
})
