// What the plants of both stores have alike.
import { describe, expect, test } from 'bun:test'
import type { KeptPlant } from '../../src/domain/plant.ts'
import { insertOrFind } from '../../src/stores/plants.ts'
import { ManualClock } from '../support/clock.ts'

const plant: KeptPlant = { id: 1n, name: 'x', tag: null, idempotencyKey: null }

describe('a create whose id is taken', () => {
  test('answers the plant that is in its way', async () => {
    const clock = new ManualClock()
    expect(
      await insertOrFind(
        async () => false,
        () => plant,
        clock,
      ),
    ).toBe(plant)
  })

  test('tries again if that plant is gone when it is looked at, for five seconds', async () => {
    const clock = new ManualClock()
    let inserts = 0
    const created = insertOrFind(
      async () => {
        inserts += 1
        await clock.sleep(999)
        return false
      },
      () => undefined,
      clock,
    ).catch((failure: unknown) => failure)
    await clock.advance(10_000)
    expect(await created).toMatchObject({ refusal: 'store-unavailable' })
    expect(inserts).toBe(6)
  })

  test('is done if another try finds the id free', async () => {
    const free = [false, true]
    const insert = async (): Promise<boolean> => free.shift() ?? false
    expect(await insertOrFind(insert, () => undefined, new ManualClock())).toBeUndefined()
    expect(free).toEqual([])
  })
})
