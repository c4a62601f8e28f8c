// Properties that hold for all input, tried on random input.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { startTestService, type TestService } from '../support/service.ts'
import { type TestStore, temporaryStore } from '../support/stores.ts'

let store: TestStore
let service: TestService
beforeAll(async () => {
  store = await temporaryStore()
  service = await startTestService(store.location)
})
afterAll(async () => {
  await service.stop()
  await store.dispose()
})

let accounts = 0
function newAccount(): Promise<string> {
  accounts += 1
  return service.tokenFor(`account ${accounts}`)
}

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(
    -(2n ** 63n),
    2n ** 63n - 1n,
    0n,
    -1n,
    2n ** 53n,
    2n ** 53n + 1n,
    -(2n ** 53n) - 1n,
  ),
)
const text = fc.string({ unit: 'binary', maxLength: 60 }).filter((value) => !value.includes('\0'))
const plant = fc.record({ id: int64, name: text, tag: fc.option(text, { nil: undefined }) })

/** A plant as JSON with every digit of its id, and with `space` where JSON allows white space. */
function json(
  { id, name, tag }: { id: bigint; name: string; tag: string | undefined },
  space: string,
): string {
  const members = [
    `"id":${space}${id}`,
    `"name":${space}${JSON.stringify(name)}`,
    ...(tag === undefined ? [] : [`"tag":${space}${JSON.stringify(tag)}`]),
  ]
  return `{${members.join(`,${space}`)}}`
}

describe('any valid plants', () => {
  test('that are created are listed back exactly, in the order of their ids, and can be deleted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(plant, { selector: ({ id }) => id, maxLength: 12 }),
        fc.constantFrom('', ' '),
        async (plants, space) => {
          const token = await newAccount()
          for (const each of plants) {
            const answer = await service.call('POST', '/plants', { token, body: json(each, space) })
            expect([answer.status, answer.json]).toEqual([200, wire(each)])
          }
          const sorted = plants.toSorted((one, other) => (one.id < other.id ? -1 : 1))
          expect((await service.call('GET', '/plants', { token })).json).toEqual(sorted.map(wire))
          for (const { id } of plants)
            expect((await service.call('DELETE', `/plants/${id}`, { token })).status).toBe(204)
          expect((await service.call('GET', '/plants', { token })).text).toBe('[]')
        },
      ),
      { numRuns: 100 },
    )
  }, 60_000)
})

function wire({ name, tag }: { name: string; tag: string | undefined }): object {
  return tag === undefined ? { name } : { name, tag }
}

describe('anything at all as a body', () => {
  const near = fc.record(
    {
      id: fc.oneof(int64.map(Number), fc.anything()),
      name: fc.oneof(fc.string(), fc.anything()),
      tag: fc.anything(),
    },
    { requiredKeys: [] },
  )

  test.each([
    ['JSON', fc.json({ maxDepth: 5 })],
    [
      'JSON that is nearly a plant',
      near.map(
        (value) =>
          JSON.stringify(value, (_key, part) => (typeof part === 'bigint' ? String(part) : part)) ??
          '',
      ),
    ],
    ['text', fc.string({ unit: 'binary', maxLength: 200 })],
    [
      'plants with a wrong byte',
      fc
        .tuple(plant, fc.nat(200), fc.string({ minLength: 1, maxLength: 1 }))
        .map(([each, at, wrong]) => {
          const body = json(each, ' ')
          return body.slice(0, at % body.length) + wrong + body.slice((at % body.length) + 1)
        }),
    ],
  ])(
    'as %s gets 200, 400 or 409, with the right body, and never a 500',
    async (_name, bodies) => {
      const token = await newAccount()
      await fc.assert(
        fc.asyncProperty(bodies, async (body) => {
          const { status, json: answered } = await service.call('POST', '/plants', { token, body })
          expect([200, 400, 409]).toContain(status)
          if (status === 200) expect(answered).toMatchObject({ name: expect.any(String) })
          else
            expect(answered).toEqual({
              error: status,
              message: expect.stringMatching(/^[^\n]{10,200}\.$/),
            })
        }),
        { numRuns: 300 },
      )
    },
    60_000,
  )

  test('as bytes gets 400', async () => {
    const token = await newAccount()
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 100 }), async (bytes) => {
        expect(
          (await service.call('POST', '/plants', { token, body: new Uint8Array(bytes) })).status,
        ).toBe(400)
      }),
      { numRuns: 200 },
    )
  }, 60_000)
})

describe('anything at all as a target', () => {
  test('gets an answer other than 500, with an Error if it is a refusal', async () => {
    const token = await newAccount()
    const segment = fc.string({ unit: 'binary', maxLength: 30 }).map(encodeURIComponent)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('/plants', '/plants/', '/'),
        segment,
        fc.constantFrom('', '?limit=', '?after=', '?'),
        segment,
        async (path, id, question, value) => {
          for (const method of ['GET', 'DELETE']) {
            const { status, text: body } = await service.call(
              method,
              `${path}${id}${question}${question === '' ? '' : value}`,
              {
                token,
              },
            )
            expect([200, 204, 302, 400, 404, 405]).toContain(status)
            if (status >= 400)
              expect(JSON.parse(body)).toEqual({ error: status, message: expect.any(String) })
          }
        },
      ),
      { numRuns: 200 },
    )
  }, 60_000)
})
