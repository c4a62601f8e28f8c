// GET /plants: order, limit, paging, and lists that are longer than one snapshot.
import { describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { until } from '../support/clock.ts'
import { type Answer, type TestService, withService } from '../support/service.ts'

/** Creates plants, named after their ids if they get no other name. */
async function plant(
  service: TestService,
  token: string,
  ids: readonly (number | bigint)[],
  name?: string,
): Promise<void> {
  for (let start = 0; start < ids.length; start += 500) {
    const part = ids.slice(start, start + 500)
    const answers = await Promise.all(
      part.map((id) =>
        service.call('POST', '/plants', { token, body: `{"id":${id},"name":"${name ?? id}"}` }),
      ),
    )
    expect(answers.every(({ status }) => status === 200)).toBe(true)
  }
}

function names({ json }: Answer): string[] {
  return (json as { name: string }[]).map(({ name }) => name)
}

/** The target of the link to the next page, if there is one. */
function nextTarget({ headers }: Answer): string | undefined {
  return /^<([^>]*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

describe('GET /plants', () => {
  test('answers 200 and [] if there is none', () =>
    withService(async (service) => {
      const answer = await service.call('GET', '/plants', { token: await service.tokenFor('a') })
      expect(answer.status).toBe(200)
      expect(answer.text).toBe('[]')
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('link')).toBeNull()
    }))

  test('lists in ascending numeric order, without ids', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, [
        10,
        9,
        -1,
        100,
        -100,
        0,
        9223372036854775807n,
        -9223372036854775808n,
      ])
      const answer = await service.call('GET', '/plants', { token })
      expect(names(answer)).toEqual([
        '-9223372036854775808',
        '-100',
        '-1',
        '0',
        '9',
        '10',
        '100',
        '9223372036854775807',
      ])
      expect(answer.text).not.toContain('"id"')
    }))

  test("shows nothing of another account's", () =>
    withService(async (service) => {
      const [one, two] = [await service.tokenFor('one'), await service.tokenFor('two')]
      await plant(service, one, [1, 2, 3])
      expect((await service.call('GET', '/plants', { token: two })).text).toBe('[]')
      expect(
        (await service.call('GET', '/plants?limit=2', { token: two })).headers.get('link'),
      ).toBeNull()
    }))

  test('shows an account the same plants through each of its tokens', () =>
    withService(async (service) => {
      const [first, second] = [await service.tokenFor('a'), await service.tokenFor('a')]
      await plant(service, first, [1])
      expect(names(await service.call('GET', '/plants', { token: second }))).toEqual(['1'])
    }))

  test('ignores unknown query parameters', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, [1])
      expect(
        names(await service.call('GET', '/plants?colour=green&Limit=0&x&=', { token })),
      ).toEqual(['1'])
    }))
})

describe('limit', () => {
  test('gives exactly the first n, all if there are fewer, none for 0', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, range(1, 5))
      expect(names(await service.call('GET', '/plants?limit=2', { token }))).toEqual(['1', '2'])
      for (const limit of [5, 6, 2_147_483_647]) {
        const answer = await service.call('GET', `/plants?limit=${limit}`, { token })
        expect(names(answer)).toEqual(['1', '2', '3', '4', '5'])
        expect(answer.headers.get('link')).toBeNull()
      }
      const none = await service.call('GET', '/plants?limit=0', { token })
      expect(none.text).toBe('[]')
      expect(none.headers.get('link')).toBeNull()
    }))

  test.each([
    '-1',
    '1.5',
    '1e2',
    '2147483648',
    '99999999999999999999',
    '',
    'ten',
    '%20',
    '+1',
    '01',
    '0x10',
    'NaN',
    '1%00',
    'null',
  ])('refuses %p', (limit) =>
    withService(async (service) => {
      const answer = await service.call('GET', `/plants?limit=${limit}`, {
        token: await service.tokenFor('a'),
      })
      expect(answer.status).toBe(400)
      expect(answer.text).toBe(
        '{"error":400,"message":"limit must be an integer between 0 and 2147483647, in plain decimal digits."}',
      )
    }),
  )

  test('refuses to be given twice', () =>
    withService(async (service) => {
      const answer = await service.call('GET', '/plants?limit=1&limit=1', {
        token: await service.tokenFor('a'),
      })
      expect(answer.status).toBe(400)
      expect(answer.json).toEqual({
        error: 400,
        message: 'limit must not be given more than once.',
      })
    }))
})

describe('paging by Link', () => {
  test('yields each plant exactly once', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const ids = [-9223372036854775808n, ...range(-5, 5), 9223372036854775807n]
      await plant(service, token, ids)
      for (const limit of [1, 2, 5, 12, 13]) {
        const seen: string[] = []
        let target: string | undefined = `/plants?limit=${limit}`
        while (target !== undefined) {
          const answer: Answer = await service.call('GET', target, { token })
          expect(names(answer).length).toBeLessThanOrEqual(limit)
          seen.push(...names(answer))
          target = nextTarget(answer)
        }
        expect(seen).toEqual(ids.map(String))
      }
    }))

  test('goes on where it was although plants around the cursor come and go', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, [10, 20, 30, 40])
      const first = await service.call('GET', '/plants?limit=2', { token })
      await service.call('DELETE', '/plants/20', { token })
      await plant(service, token, [15, 25])
      const second = await service.call('GET', nextTarget(first) ?? '', { token })
      expect([...names(first), ...names(second)]).toEqual(['10', '20', '25', '30'])
      expect(names(await service.call('GET', nextTarget(second) ?? '', { token }))).toEqual(['40'])
    }))

  test('takes a cursor without a limit', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, range(1, 4))
      const after = new URL(
        nextTarget(await service.call('GET', '/plants?limit=1', { token })) ?? '',
        service.url,
      ).searchParams.get('after')
      expect(names(await service.call('GET', `/plants?after=${after}`, { token }))).toEqual([
        '2',
        '3',
        '4',
      ])
    }))

  test.each([
    '',
    'x',
    '7',
    'AAAAAAAAAA',
    'AAAAAAAAAAAA',
    'AAAAAAAAAA7',
    'AAAAAAAAAA=',
    '!!!!!!!!!!A',
  ])('refuses the cursor %p', (after) =>
    withService(async (service) => {
      const answer = await service.call('GET', `/plants?limit=1&after=${after}`, {
        token: await service.tokenFor('a'),
      })
      expect(answer.status).toBe(400)
      expect(answer.json).toEqual({
        error: 400,
        message: 'after must be a cursor from a Link header of this service.',
      })
    }),
  )
})

describe('a list beyond one snapshot', () => {
  test('gives all of it, or exactly the limit with a link to the rest', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, range(1, 3500))
      const all = range(1, 3500).map(String)
      expect(names(await service.call('GET', '/plants', { token }))).toEqual(all)
      for (const limit of [999, 1000, 1001, 2000, 2500, 3499]) {
        const answer = await service.call('GET', `/plants?limit=${limit}`, { token })
        expect(names(answer)).toEqual(all.slice(0, limit))
        expect(names(await service.call('GET', nextTarget(answer) ?? '', { token }))).toEqual(
          all.slice(limit, limit * 2),
        )
      }
      for (const limit of [3500, 3501, 2_147_483_647]) {
        const answer = await service.call('GET', `/plants?limit=${limit}`, { token })
        expect(names(answer)).toEqual(all)
        expect(answer.headers.get('link')).toBeNull()
      }
    }))

  test('shows exactly once what is there throughout, while others write', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const stable = range(1, 4000).map((n) => n * 10)
      await plant(service, token, stable)
      let writing = true
      const written = new Set<string>()
      const writer = (async () => {
        for (let n = 0; writing; n += 1) {
          const id = (n % 4000) * 10 + 5
          written.add(String(id))
          await service.call('POST', '/plants', { token, body: `{"id":${id},"name":"${id}"}` })
          await service.call('DELETE', `/plants/${id}`, { token })
        }
      })()
      for (let round = 0; round < 10; round += 1) {
        const listed = names(await service.call('GET', '/plants', { token }))
        expect(listed.filter((name) => !name.endsWith('5'))).toEqual(stable.map(String))
        expect(new Set(listed).size).toBe(listed.length)
        expect(listed.every((name) => !name.endsWith('5') || written.has(name))).toBe(true)
      }
      writing = false
      await writer
    }))

  test('is read only as far as its reader takes it, and breaks off if the reader leaves', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(service, token, range(1, 1500), 'n'.repeat(20_000))
      let pages = 0
      const listPlants = service.store.plants.list.bind(service.store.plants)
      service.store.plants.list = (...range) => {
        pages += 1
        return listPlants(...range)
      }
      const list = (): Promise<Answer> => service.call('GET', '/plants', { token })
      await list()
      const pagesOfAll = pages
      const { port } = new URL(service.url)
      const readers = Array.from({ length: 3 }, () => {
        const socket = connect(Number(port), '127.0.0.1')
        socket.pause()
        socket.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
        return socket
      })
      await until('all have asked', () => service.underWay() === readers.length)
      // A client that reads gets all 30 MB meanwhile; for each other one, a socket takes less.
      await list()
      expect(pages - 2 * pagesOfAll).toBeLessThan(readers.length * 0.5 * pagesOfAll)
      for (const reader of readers) reader.destroy()
      const brokenOff = (): number =>
        service.logged.filter((line) => line.includes('complete: false')).length
      await until('the lists break off', () => brokenOff() === readers.length)
      expect((await service.call('GET', '/plants?limit=1', { token })).status).toBe(200)
    }))
})

describe('a long list with a limit, while others write', () => {
  test(
    'never exceeds its limit, and its link skips nothing that is there throughout',
    () =>
      withService(async (service) => {
        const token = await service.tokenFor('a')
        const stable = range(1, 4000).map((n) => n * 10)
        await plant(service, token, stable)
        let writing = true
        const writer = (async () => {
          for (let n = 0; writing; n += 1) {
            const id = (n % 4000) * 10 + 5
            await service.call('POST', '/plants', { token, body: `{"id":${id},"name":"${id}"}` })
            await service.call('DELETE', `/plants/${id}`, { token })
          }
        })()
        for (let round = 0; round < 10; round += 1) {
          const seen: string[] = []
          let target: string | undefined = '/plants?limit=1500'
          while (target !== undefined) {
            // If the limit would be exceeded the list breaks off, and the client asks again.
            const answer: Answer | undefined = await service
              .call('GET', target, { token })
              .catch(() => undefined)
            if (answer === undefined) continue
            expect(names(answer).length).toBeLessThanOrEqual(1500)
            seen.push(...names(answer))
            target = nextTarget(answer)
          }
          expect(seen.filter((name) => !name.endsWith('5'))).toEqual(stable.map(String))
          expect(new Set(seen).size).toBe(seen.length)
        }
        writing = false
        await writer
      }),
    60_000,
  )

  test('breaks off rather than leave out a plant or exceed the limit, and logs that it did', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await plant(
        service,
        token,
        range(1, 3000).map((n) => n * 10),
      )
      const { plants } = service.store
      const nthId = plants.nthId.bind(plants)
      // Once the end of the list is settled, a plant is created before it.
      plants.nthId = async (...of) => {
        const found = nthId(...of)
        if (of[2] === 1)
          await plants.create('a', {
            id: 15_001n,
            name: 'late',
            tag: null,
            idempotencyKey: null,
          })
        return found
      }
      await expect(service.call('GET', '/plants?limit=2500', { token })).rejects.toThrow()
      expect(
        service.logged.some(
          (line) => line.startsWith('request') && line.includes('complete: false'),
        ),
      ).toBe(true)
    }))
})
