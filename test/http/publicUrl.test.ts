// The URLs that the service gives out, if clients find it elsewhere than where it listens.
import { describe, expect, test } from 'bun:test'
import { readSettings, UsageProblems } from '../../src/cli/settings.ts'
import { serve } from '../support/process.ts'
import { call, folderMaker, withService } from '../support/service.ts'

const folder = folderMaker()

test.each(['', 'https://example.org/garden'])('links begin with the public URL %p', (publicUrl) =>
  withService(
    async (service) => {
      const token = await service.tokenFor('a')
      for (const id of [1, 2])
        await service.call('POST', '/plants', { token, body: `{"id":${id},"name":"x"}` })
      const { headers } = await service.call('GET', '/plants?limit=1', { token })
      const [, link = ''] = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '') ?? []
      expect(link).toStartWith(`${publicUrl}/plants?limit=1&after=`)
      const next = await service.call('GET', link.slice(publicUrl.length), { token })
      expect([next.text, next.headers.get('link')]).toEqual(['[{"name":"x"}]', null])
      const home = await service.call('GET', '/')
      expect([home.status, home.headers.get('location')]).toEqual([302, `${publicUrl}/docs`])
      expect((await service.call('GET', '/openapi.json')).json).toMatchObject({
        servers: [{ url: publicUrl || '/' }],
      })
    },
    {},
    { publicUrl },
  ),
)

describe('--public-url', () => {
  test('is where links lead, and not where the service listens', async () => {
    const server = serve(folder(), '--public-url', 'https://example.org/garden/')
    const url = await server.url
    expect(url).toStartWith('http://127.0.0.1:')
    expect((await call(url, 'GET', '/')).headers.get('location')).toBe(
      'https://example.org/garden/docs',
    )
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  })

  test.each([
    ['http://localhost:8081', 'http://localhost:8081'],
    ['https://EXAMPLE.org/a/b//', 'https://example.org/a/b'],
    ['https://[::1]/<a>"', 'https://[::1]/%3Ca%3E%22'],
  ])('takes %p as %p', (text, url) => {
    const { values } = readSettings(['public-url'], [], ['--public-url', text], {})
    expect(values['public-url']).toBe(url)
  })

  test.each([
    '',
    '/garden',
    'example.org/garden',
    'ftp://example.org',
    'https://',
    'https://u@example.org',
    'https://example.org/?',
    'https://example.org/#x',
    'https://example.org/a b',
    'https://example.org:99999',
  ])('refuses %p', (text) => {
    const mustBe = 'a URL such as https://example.org/garden, without user, query or fragment'
    expect(() => readSettings(['public-url'], [], [], { PLANTS_PUBLIC_URL: text })).toThrow(
      new UsageProblems([`PLANTS_PUBLIC_URL must be ${mustBe}, not ${JSON.stringify(text)}.`]),
    )
  })
})
