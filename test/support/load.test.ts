// The clients under load find out a service that does not keep what it has acknowledged.
import { expect, test } from 'bun:test'
import { Load, nothingWrong } from './load.ts'
import { call, withService } from './service.ts'

test('finds nothing wrong with a service that keeps its word', () =>
  withService(async ({ url, tokenFor }) => {
    const load = new Load([url], await tokenFor('load'))
    load.start(8)
    await load.further(300)
    await load.stop()
    expect(await load.findings()).toEqual(nothingWrong)
    expect(load.acknowledged).toBeGreaterThanOrEqual(300)
  }))

test('finds plants that were lost, have risen, or were never created', () =>
  withService(async ({ url, tokenFor }) => {
    const token = await tokenFor('load')
    const load = new Load([url], token)
    // One client: it creates 0, 1 and 2, deletes 0, and so on; it lists after each fifth create.
    load.start(1)
    await load.further(50)
    await load.stop()
    expect((await call(url, 'DELETE', '/plants/1', { token })).status).toBe(204)
    for (const id of [0, 1_000_000])
      await call(url, 'POST', '/plants', { token, body: `{"id":${id},"name":"${id}"}` })
    const findings = await load.findings()
    expect(findings).toEqual({ ...nothingWrong, lost: [1], risen: [0], invented: [1_000_000] })
  }))

test('finds a list that does not show what was acknowledged', () =>
  withService(async ({ url, tokenFor }) => {
    const token = await tokenFor('load')
    const load = new Load([url], token)
    load.start(1)
    for (let id = 1; id < 400; id += 3) {
      // Behind the back of the client, and at once after its answer.
      while ((await call(url, 'DELETE', `/plants/${id}`, { token })).status !== 204)
        await Bun.sleep(1)
    }
    await load.stop()
    const { wrong } = await load.findings()
    expect(
      wrong.find((what) => /^list: \d+ is absent, and must be present$/.test(what)),
    ).toBeDefined()
  }))

test('finds answers that no client may get, and those that do not come', async () => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response('{"error":409}', { status: 409 }),
  })
  const load = new Load([server.url.origin], 'a-token')
  const seen = async (outcome: string): Promise<void> => {
    while (load.statuses[outcome] === undefined) await Bun.sleep(1)
  }
  load.start(1)
  await seen('delete 409')
  await server.stop(true)
  await seen('create without an answer')
  await load.stop()
})
