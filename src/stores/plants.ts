// What the plants of both stores have alike: the bounds of their ids, how one is created, and how
// long that write is.
import type { Clock } from '../clock.ts'
import { type KeptPlant, textLength } from '../domain/plant.ts'
import type { Awaitable } from '../domain/store.ts'
import { nothingDone } from './failures.ts'

export { idMax } from '../domain/plant.ts'
export const idMin = -(2n ** 63n)

/** The least id above another, which is not `idMax`. */
export function firstAfter(after: bigint | undefined): bigint {
  return after === undefined ? idMin : after + 1n
}

/** A create is tried again for this long if the plant in its way is gone each time. */
const createMaxMs = 5000

/**
 * Inserts a plant and resolves to undefined, or to the plant that is in its way. `insert` says
 * whether it did, or how many rows it changed. Rejects with a Failure.
 */
export async function insertOrFind(
  insert: () => Promise<boolean | number>,
  find: () => Awaitable<KeptPlant | undefined>,
  clock: Clock,
): Promise<KeptPlant | undefined> {
  const endMs = clock.monotonicMs() + createMaxMs
  do {
    if (await insert()) return undefined
    const inTheWay = await find()
    if (inTheWay !== undefined) return inTheWay
  } while (clock.monotonicMs() < endMs)
  throw nothingDone(new Error('the plant in the way was gone each time it was looked at'))
}

/** The least length that a write is counted with, in UTF-16 code units as all lengths of writes. */
export const writeLengthMin = 50

/** How long the create of a plant is. */
export function createLength(plant: KeptPlant): number {
  return writeLengthMin + textLength(plant) + (plant.idempotencyKey?.length ?? 0)
}
