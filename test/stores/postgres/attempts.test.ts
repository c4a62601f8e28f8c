// How often a statement is tried, with which pauses, and what is said if that was in vain.
import { describe, expect, test } from 'bun:test'
import { DatabaseError } from 'pg'
import type { Failure } from '../../../src/domain/failure.ts'
import { Attempts } from '../../../src/stores/postgres/attempts.ts'
import { Fault, faultOf, unanswered, unsent } from '../../../src/stores/postgres/cluster/faults.ts'
import type { Statement } from '../../../src/stores/postgres/statements.ts'
import { ManualClock } from '../../support/clock.ts'

const statement = { name: 'it', text: 'select 1' }
const operationMs = 5000
const noConnection = new Fault('no connection to the database', unsent)
const noAnswer = new Fault('the database did not answer in time', unanswered)

function serverError(code: string): DatabaseError {
  return Object.assign(new DatabaseError('it failed', 0, 'error'), { code })
}

/**
 * Attempts on a database that fails with each of these and then answers with no rows; when it was
 * asked, and what.
 */
function attempts(
  clock: ManualClock,
  failures: Iterator<unknown>,
  { random = 255, relaysStatements = false } = {},
): { attempts: Attempts; askedMs: number[]; sent: unknown[] } {
  const askedMs: number[] = []
  const sent: unknown[] = []
  const send = async ({ name }: Statement, values: readonly unknown[]): Promise<[]> => {
    askedMs.push(clock.monotonicMs())
    sent.push([name, values])
    const failure = failures.next()
    if (!failure.done) throw failure.value
    return []
  }
  const nodes = { send, isClosed: false }
  const randomBytes = (count: number): Uint8Array => new Uint8Array(count).fill(random)
  return {
    attempts: new Attempts(
      nodes,
      { relaysStatements, hasBatchFunctions: false },
      operationMs,
      randomBytes,
      clock,
    ),
    askedMs,
    sent,
  }
}

function* forEver(failure: unknown): Generator<unknown> {
  for (;;) yield failure
}

/** What an operation ended with, once all its time has passed. */
async function outcomeOf(work: Promise<unknown>, clock: ManualClock): Promise<unknown> {
  const outcome = work.catch((failure: Failure) => [failure.refusal, failure.cause])
  await clock.advance(2 * operationMs)
  return await outcome
}

describe('a statement that fails', () => {
  test('on a key that is taken is not tried again, if it is no batch', async () => {
    const clock = new ManualClock()
    const taken = serverError('23505')
    const { attempts: tried, askedMs } = attempts(clock, forEver(taken))
    expect(await outcomeOf(tried.write(statement, []), clock)).toEqual(['store-unavailable', taken])
    expect(askedMs).toEqual([0])
  })

  test('is tried again after pauses that double up to half a second, and for five seconds', async () => {
    const clock = new ManualClock()
    const { attempts: tried, askedMs } = attempts(clock, forEver(noConnection))
    expect(await outcomeOf(tried.read(statement, []), clock)).toEqual([
      'store-unavailable',
      noConnection,
    ])
    const pausesMs = askedMs.slice(1).map((atMs, n) => atMs - (askedMs[n] ?? 0))
    expect(pausesMs).toEqual([10, 20, 40, 80, 160, 320, ...Array(8).fill(500)])
  })

  test('pauses for a random part of that', async () => {
    const clock = new ManualClock()
    const { attempts: tried, askedMs } = attempts(clock, [noConnection, noConnection].values(), {
      random: 127,
    })
    await outcomeOf(tried.read(statement, []), clock)
    expect(askedMs).toEqual([0, 5, 15])
  })

  test('is not tried again if another attempt would fail too', async () => {
    const clock = new ManualClock()
    const violation = serverError('23514')
    const { attempts: tried, askedMs } = attempts(clock, forEver(violation))
    expect(await outcomeOf(tried.write(statement, []), clock)).toEqual([
      'store-unavailable',
      violation,
    ])
    expect(askedMs).toEqual([0])
  })

  test.each(['57014', 'XX000'])(
    'with %s is tried again only if its server relays statements, and so cannot know',
    async (code) => {
      const clock = new ManualClock()
      const canceled = serverError(code)
      const direct = attempts(clock, forEver(canceled))
      expect(await outcomeOf(direct.attempts.write(statement, []), clock)).toEqual([
        'store-unavailable',
        canceled,
      ])
      expect(direct.askedMs).toHaveLength(1)
      const relayed = attempts(clock, forEver(canceled), { relaysStatements: true })
      expect(await outcomeOf(relayed.attempts.write(statement, []), clock)).toEqual([
        'outcome-unknown',
        canceled,
      ])
      expect(relayed.askedMs.length).toBeGreaterThan(1)
    },
  )

  test('for good is tried again if an earlier attempt may have been done', async () => {
    const clock = new ManualClock()
    const failures = [noAnswer, serverError('57014'), serverError('57014')].values()
    const { attempts: tried, askedMs } = attempts(clock, failures)
    expect(await outcomeOf(tried.write(statement, []), clock)).toEqual([])
    expect(askedMs).toHaveLength(4)
  })

  test('at its deadline ends its connection, on which a relaying server still waits', () => {
    expect(faultOf(serverError('57014')).connection).toBe('spent')
  })

  test.each([
    ['its answer was lost', noAnswer],
    ['the server ended the connection', serverError('57P01')],
    ['the driver lost the connection', new Error('Connection terminated unexpectedly')],
  ])('is of unknown outcome if it writes and %s once', async (_what, unknown) => {
    const clock = new ManualClock()
    function* failures(): Generator<unknown> {
      yield unknown
      yield* forEver(noConnection)
    }
    const { attempts: tried } = attempts(clock, failures())
    expect(await outcomeOf(tried.write(statement, []), clock)).toEqual([
      'outcome-unknown',
      noConnection,
    ])
  })
})

describe('a batch', () => {
  test('that was done before is not done again: its row is read, and if a failover has lost that, it is tried again', async () => {
    const clock = new ManualClock()
    const { attempts: tried, sent } = attempts(clock, [noAnswer, serverError('23505')].values())
    await outcomeOf(tried.writeOnce(statement, [1], [2]), clock)
    expect(sent).toEqual([
      ['it', [1, 2]],
      ['it', [1, 2]],
      // This finds no row.
      ['find_batch', [1]],
      ['it', [1, 2]],
    ])
  })
})
