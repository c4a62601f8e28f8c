// Long work takes turns: how much of it one turn of the event loop does.
import { describe, expect, test } from 'bun:test'
import { Pace } from '../../src/http/pace.ts'

const kibi = 1024

/** Asks for turns all at once, and tells in which turn of the event loop each was given, from 0. */
async function turnsOf(texts: readonly number[]): Promise<number[]> {
  const pace = new Pace()
  let turn = 0
  let waiting = true
  const count = (): void => {
    turn += 1
    if (waiting) setImmediate(count)
  }
  setImmediate(count)
  const turns = texts.map(async (text) => {
    await pace.turn(text)
    return turn
  })
  const given = await Promise.all(turns)
  waiting = false
  return given
}

describe('long work', () => {
  test('is done at once as far as it fits into one turn, and the rest in the turns that follow, in its order', async () => {
    const turns = await turnsOf(Array<number>(10).fill(64 * kibi))
    expect(turns.slice(0, 4)).toEqual([0, 0, 0, 0])
    expect(turns.slice(4, 8).every((turn) => turn === turns[4])).toBe(true)
    expect(turns[4]).toBeGreaterThan(0)
    expect(turns[8]).toBeGreaterThan(turns[4] ?? 0)
  })

  test('that exceeds a turn by itself gets one of its own', async () => {
    const turns = await turnsOf([kibi, 16 * 1024 * kibi, 16 * 1024 * kibi, kibi])
    expect(new Set(turns).size).toBe(4)
    expect(turns.toSorted((one, other) => one - other)).toEqual(turns)
  })
})
