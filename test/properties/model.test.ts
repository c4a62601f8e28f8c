// Compares the service with a model of accounts, tokens and plants. The two must agree at each step
// of random sequences of commands.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type TestService, withService } from '../support/service.ts'

interface ModelToken {
  readonly text: string
  readonly id: string
  readonly account: string
  readonly mayWrite: boolean
  usable: boolean
}

interface Model {
  readonly tokens: ModelToken[]
  readonly plants: Map<string, Map<number, { name: string; tag?: string; key?: string }>>
}

type Command = (model: Model, service: TestService) => Promise<void>

const accounts = ['rose', 'oak', 'fern']
const account = fc.constantFrom(...accounts)
const id = fc.integer({ min: -2, max: 5 })
const name = fc.constantFrom('x', 'y')
const pick = fc.nat(50)

function plantsOf(model: Model, of: string) {
  const plants =
    model.plants.get(of) ?? new Map<number, { name: string; tag?: string; key?: string }>()
  model.plants.set(of, plants)
  return plants
}

const issue = fc.tuple(account, fc.boolean()).map(
  ([of, mayWrite]): Command =>
    async (model, service) => {
      const text = await service.tokenFor(of, {
        scopes: mayWrite ? ['plants:read', 'plants:write'] : ['plants:read'],
      })
      const known = new Set(model.tokens.map((token) => token.id))
      const record = (await service.store.tokens.list(of)).find((token) => !known.has(token.id))
      model.tokens.push({ text, id: record?.id ?? '', account: of, mayWrite, usable: true })
    },
)

const revoke = pick.map(
  (n): Command =>
    async (model, service) => {
      const token = model.tokens[n % model.tokens.length]
      if (token === undefined) return
      await service.store.tokens.revoke(token.id, service.clock.wallMs())
      token.usable = false
    },
)

const create = fc
  .tuple(
    pick,
    id,
    name,
    fc.option(name, { nil: undefined }),
    fc.option(fc.constantFrom('k1', 'k2'), { nil: undefined }),
  )
  .map(
    ([n, of, plantName, tag, key]): Command =>
      async (model, service) => {
        const token = model.tokens[n % model.tokens.length]
        const plant = { name: plantName, ...(tag === undefined ? {} : { tag }) }
        const answer = await service.call('POST', '/plants', {
          token: token?.text ?? 'none',
          body: JSON.stringify({ id: of, ...plant }),
          headers: key === undefined ? {} : { 'Idempotency-Key': key },
        })
        if (token === undefined || !token.usable) return expect(answer.status).toBe(401)
        if (!token.mayWrite) return expect(answer.status).toBe(403)
        const plants = plantsOf(model, token.account)
        const existing = plants.get(of)
        if (existing === undefined)
          plants.set(of, { ...plant, ...(key === undefined ? {} : { key }) })
        const retried = existing !== undefined && key !== undefined && existing.key === key
        const same = existing?.name === plantName && existing.tag === tag
        expect(answer.status).toBe(
          existing === undefined || (retried && same) ? 200 : retried ? 422 : 409,
        )
        if (answer.status === 200) expect(answer.json).toEqual(plant)
      },
  )

const remove = fc.tuple(pick, id).map(
  ([n, of]): Command =>
    async (model, service) => {
      const token = model.tokens[n % model.tokens.length]
      const answer = await service.call('DELETE', `/plants/${of}`, { token: token?.text ?? 'none' })
      if (token === undefined || !token.usable) return expect(answer.status).toBe(401)
      if (!token.mayWrite) return expect(answer.status).toBe(403)
      expect(answer.status).toBe(plantsOf(model, token.account).delete(of) ? 204 : 404)
    },
)

const list = fc.tuple(pick, fc.option(fc.nat(4), { nil: undefined })).map(
  ([n, limit]): Command =>
    async (model, service) => {
      const token = model.tokens[n % model.tokens.length]
      const answer = await service.call(
        'GET',
        `/plants${limit === undefined ? '' : `?limit=${limit}`}`,
        {
          token: token?.text ?? 'none',
        },
      )
      if (token === undefined || !token.usable) return expect(answer.status).toBe(401)
      const plants = [...plantsOf(model, token.account)].toSorted(([one], [other]) => one - other)
      const shown = plants
        .slice(0, limit ?? plants.length)
        .map(([, { name: shownName, tag }]) =>
          tag === undefined ? { name: shownName } : { name: shownName, tag },
        )
      expect(answer.json).toEqual(shown)
      expect(answer.headers.has('link')).toBe(
        limit !== undefined && limit > 0 && plants.length > limit,
      )
    },
)

test('the service agrees with a model of itself over random sequences of commands', async () => {
  const commands = fc.array(
    fc.oneof(
      { weight: 2, arbitrary: issue },
      revoke,
      { weight: 6, arbitrary: create },
      { weight: 3, arbitrary: remove },
      { weight: 3, arbitrary: list },
    ),
    {
      minLength: 10,
      maxLength: 60,
    },
  )
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      await withService(async (service) => {
        const model: Model = { tokens: [], plants: new Map() }
        for (const command of sequence) await command(model, service)
      })
    }),
    { numRuns: 60 },
  )
}, 120_000)
