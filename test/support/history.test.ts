// The clients whose history is judged find out a service that does not keep its word.
import { expect, test } from 'bun:test'
import { judgementOn, record } from './history.ts'
import { withService } from './service.ts'

const lastsMs = 300

test('nothing is held against a service that keeps its word', () =>
  withService(async ({ url, tokenFor }) => {
    const tokens = [await tokenFor('one'), await tokenFor('other')]
    const doors = tokens.map((token) => ({ url, token }))
    const history = await record(doors, Bun.sleep(lastsMs))
    expect(judgementOn(history)).toEqual({ judged: 8, notJudged: 0, offences: [] })
    expect(history.unknown).toBe(0)
    expect(history.registers.every((register) => register.length > 10)).toBe(true)
  }))

test('a plant that is deleted behind the back of the clients is held against the service', () =>
  withService(async ({ url, tokenFor, call }) => {
    const token = await tokenFor('one')
    const behindTheirBack = async (): Promise<void> => {
      for (let deleted = 0; deleted < 20; await Bun.sleep(1))
        if ((await call('DELETE', '/plants/2', { token })).status === 204) deleted += 1
    }
    const history = await record([{ url, token }], behindTheirBack())
    const { judged, offences } = judgementOn(history)
    expect(judged).toBe(4)
    expect(offences).toHaveLength(1)
    expect(offences[0]).toMatch(/^The last of these answers is wrong\. Before it there was /)
  }))
