// The judge of histories: by hand on small ones, and against a search that tries every order.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { judge, type Operation, type Request } from './linearizability.ts'

const create = (plant: string, key = ''): Request => ({ kind: 'create', plant, key })
const remove: Request = { kind: 'delete' }
const read: Request = { kind: 'read' }

/** An operation from one time to another; without an answer, of unknown outcome. */
const at = (
  calledMs: number,
  answeredMs: number,
  request: Request,
  answer?: string,
): Operation => ({
  calledMs,
  answeredMs,
  request,
  answer,
})

const isLinearizable = (history: readonly Operation[]): boolean =>
  judge(history).kind === 'linearizable'

describe('a history is linearizable', () => {
  test.each<[string, Operation[]]>([
    ['without operations', []],
    [
      'if each operation finds what those before it left',
      [
        at(0, 1, read, ''),
        at(2, 3, remove, 'missing'),
        at(4, 5, create('p', 'k'), 'created'),
        at(6, 7, create('p', 'k'), 'created'),
        at(8, 9, create('q', 'k'), 'key reused'),
        at(10, 11, create('q'), 'taken'),
        at(12, 13, read, 'p'),
        at(14, 15, remove, 'deleted'),
        at(16, 17, create('q'), 'created'),
      ],
    ],
    [
      'if operations that overlap fit in one order',
      [at(0, 9, remove, 'deleted'), at(1, 8, create('p'), 'created'), at(2, 7, read, 'p')],
    ],
    [
      'if a read shows a create before its answer',
      [at(0, 9, create('p'), 'created'), at(1, 2, read, 'p'), at(3, 4, read, 'p')],
    ],
    [
      'if a create of unknown outcome takes effect late',
      [at(0, 1, create('p')), at(2, 3, read, ''), at(4, 5, read, 'p')],
    ],
    [
      'if a delete of unknown outcome takes effect late, or never',
      [at(0, 1, create('p'), 'created'), at(2, 3, remove), at(4, 5, read, 'p')],
    ],
    [
      'if a repeat with its key makes the plant that another client has deleted again',
      [
        at(0, 1, create('p', 'k')),
        at(2, 9, create('p', 'k'), 'created'),
        at(3, 4, remove, 'deleted'),
        at(5, 6, read, ''),
        at(10, 11, read, 'p'),
      ],
    ],
    [
      'if creates that nobody saw explain deletes',
      [
        at(0, 1, create('p')),
        at(0, 1, create('q')),
        at(2, 3, remove, 'deleted'),
        at(4, 5, remove, 'deleted'),
      ],
    ],
  ])('%s', (_when, history) => {
    expect(judge(history)).toEqual({ kind: 'linearizable' })
  })
})

describe('a history is not linearizable', () => {
  test.each<[string, Operation[], number]>([
    ['if a read shows a plant that nobody created', [at(0, 1, read, 'p')], 0],
    [
      'if an acknowledged create is lost',
      [at(0, 1, create('p'), 'created'), at(2, 3, read, '')],
      1,
    ],
    [
      'if an acknowledged delete is undone',
      [at(0, 1, create('p'), 'created'), at(2, 3, remove, 'deleted'), at(4, 5, read, 'p')],
      2,
    ],
    [
      'if a plant is seen, and then not yet',
      [at(0, 9, create('p'), 'created'), at(1, 2, read, 'p'), at(3, 4, read, '')],
      2,
    ],
    [
      'if two creates without a key both made the plant',
      [at(0, 9, create('p'), 'created'), at(0, 9, create('q'), 'created')],
      1,
    ],
    [
      'if a plant was deleted twice',
      [at(0, 1, create('p'), 'created'), at(2, 9, remove, 'deleted'), at(2, 9, remove, 'deleted')],
      2,
    ],
    [
      'if a create of unknown outcome took effect twice',
      [at(0, 1, create('p')), at(2, 3, remove, 'deleted'), at(4, 5, remove, 'deleted')],
      2,
    ],
    [
      'if an id is taken by a plant with the key of the create',
      [at(0, 1, create('p', 'k'), 'created'), at(2, 3, create('p', 'k'), 'taken')],
      1,
    ],
    [
      'if a delete whose answer was lost is repeated, and destroys the plant of another client',
      [
        at(0, 1, create('p'), 'created'),
        at(2, 9, remove, 'deleted'),
        at(3, 4, create('q'), 'created'),
        at(10, 11, read, ''),
      ],
      3,
    ],
    [
      'if a create whose answer was lost is repeated, and undoes the delete of another client',
      [at(0, 9, create('p', 'k'), 'created'), at(1, 2, remove, 'deleted'), at(10, 11, read, 'p')],
      2,
    ],
  ])('%s', (_when, history, first) => {
    expect(judge(history)).toMatchObject({ kind: 'not linearizable', at: history[first] })
  })
})

test('a search that takes too long is given up, and says so', () => {
  const history = [
    ...Array.from({ length: 20 }, (_, n) => at(0, 9, create(`${n}`), 'created')),
    ...Array.from({ length: 20 }, () => at(0, 9, remove, 'deleted')),
  ]
  expect(judge(history, 1000)).toEqual({ kind: 'not judged' })
})

test('many operations of unknown outcome do not make the search long', () => {
  const lost = Array.from({ length: 200 }, (_, n) => [
    at(n, n, create(`lost ${n}`)),
    at(n, n, remove),
  ])
  const known = Array.from({ length: 200 }, (_, n) => [
    at(300 + 4 * n, 301 + 4 * n, create(`${n}`), 'created'),
    at(302 + 4 * n, 303 + 4 * n, remove, 'deleted'),
  ])
  expect(judge([...lost, ...known].flat(), 10_000)).toEqual({ kind: 'linearizable' })
})

// Random histories.

/** The contract once more, for a plant and the key that came with it. */
class Plant {
  #there: { plant: string; key: string } | undefined

  answer(request: Request): string {
    const there = this.#there
    switch (request.kind) {
      case 'read':
        return there?.plant ?? ''
      case 'delete':
        this.#there = undefined
        return there ? 'deleted' : 'missing'
      case 'create':
        if (!there) {
          this.#there = request
          return 'created'
        }
        if (request.key !== there.key || !request.key) return 'taken'
        return request.plant === there.plant ? 'created' : 'key reused'
    }
  }
}

/** Tries every order in which no operation comes before one that was answered before its call. */
function fitsInSomeOrder(history: readonly Operation[], before: readonly Request[] = []): boolean {
  if (history.every(({ answer }) => answer === undefined)) return true
  return history.some((operation) => {
    const others = history.filter((other) => other !== operation)
    const isTooEarly = others.some(
      ({ answer, answeredMs }) => answer !== undefined && answeredMs < operation.calledMs,
    )
    if (isTooEarly) return false
    const plant = new Plant()
    for (const request of before) plant.answer(request)
    const answer = plant.answer(operation.request)
    if (operation.answer !== undefined && operation.answer !== answer) return false
    return fitsInSomeOrder(others, [...before, operation.request])
  })
}

const request: fc.Arbitrary<Request> = fc.oneof(
  fc.record({
    kind: fc.constant('create' as const),
    plant: fc.constantFrom('p', 'q', 'r'),
    key: fc.constantFrom('', '', 'k', 'l'),
  }),
  fc.constant(remove),
  fc.constant(read),
)

/** What one plant answers, from operations that overlap as they like around their moments. */
const history = (lengthMax: number): fc.Arbitrary<Operation[]> =>
  fc
    .array(
      fc.record({
        request,
        leadMs: fc.nat(4),
        trailMs: fc.nat(4),
        isLost: fc.constantFrom(false, false, false, true),
        isDone: fc.boolean(),
      }),
      { maxLength: lengthMax },
    )
    .map((asked) => {
      const plant = new Plant()
      return asked.map(({ request: each, leadMs, trailMs, isLost, isDone }, n) => {
        const answer = isLost && !isDone ? undefined : plant.answer(each)
        return at(n - leadMs, n + trailMs, each, isLost ? undefined : answer)
      })
    })

const answers = ['created', 'taken', 'key reused', 'deleted', 'missing', 'p', 'q', '']

describe('random histories', () => {
  test('that came from one plant are all linearizable', () => {
    fc.assert(
      fc.property(history(60), (operations) => expect(isLinearizable(operations)).toBe(true)),
      { numRuns: 500 },
    )
  })

  test('with a false answer are judged as by the search through every order', () => {
    const verdicts = new Map<boolean, number>()
    fc.assert(
      fc.property(history(7), fc.nat(6), fc.constantFrom(...answers), (operations, n, answer) => {
        const changed = operations.map((operation, index) =>
          index === n ? { ...operation, answer } : operation,
        )
        const verdict = fitsInSomeOrder(changed)
        verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1)
        expect(isLinearizable(changed)).toBe(verdict)
      }),
      { numRuns: 3000 },
    )
    // The test would prove little if nearly all were judged alike.
    for (const verdict of [true, false]) expect(verdicts.get(verdict)).toBeGreaterThan(300)
  })
})
