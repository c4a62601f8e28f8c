// What can be done with plants: create one, list them, delete one.
import { Failure } from './failure.ts'
import { type IdentifiedPlant, idMax, type KeptPlant, type Plant, samePlant } from './plant.ts'
import { type PlantRange, type Plants, pageTextMax } from './store.ts'

/** Creates a plant and never overwrites one. A repeat of a create with its key succeeds. */
export async function createPlant(
  plants: Plants,
  account: string,
  plant: KeptPlant,
): Promise<Plant> {
  const existing = await plants.create(account, plant)
  if (existing === undefined) return plant
  if (plant.idempotencyKey === null || plant.idempotencyKey !== existing.idempotencyKey)
    throw new Failure('id-taken')
  if (!samePlant(plant, existing)) throw new Failure('idempotency-key-reused')
  return plant
}

/**
 * Deletes a plant. The refusal is the same if the plant never was, is already deleted, or belongs
 * to another account.
 */
export async function deletePlant(plants: Plants, account: string, id: bigint): Promise<void> {
  if (!(await plants.delete(account, id))) throw new Failure('plant-missing')
}

// A list of up to a thousand plants is one snapshot. A longer one is walked in pages, so that
// neither memory nor a snapshot is held for a slow reader.

/** Plants in the first page, and so the longest list that is one snapshot. */
export const pagePlants = 1000

/** A snapshot with more text than this, in UTF-16 code units, waits for memory. */
const smallTextMax = 128 * 1024

/** A page of a longer list is small, so that others wait less and less is held in memory. */
const walkPagePlants = 200
const walkPageTextMax = 32 * 1024

/** Resolves when it is the turn of work on so much text, in UTF-16 code units. */
type TakeTurn = (text: number) => Promise<void>

/** If the limit cut a list, `next` is the last id within the limit: the list goes on after it. */
export interface Snapshot {
  readonly plants: readonly IdentifiedPlant[]
  readonly next: bigint | undefined
}

/** A list in pages. Each page is read on demand, and each iteration reads all of them again. */
export interface Walk {
  readonly pages: AsyncIterable<readonly IdentifiedPlant[]>
  readonly next: bigint | undefined
}

/** A snapshot with much text. The caller reads it when there is memory for it. */
export interface LargeSnapshot {
  /**
   * Undefined if the snapshot holds more text than `textMax`. With `pageTextMax` the answer is
   * never undefined: a list with more text is walked instead.
   */
  readonly read: (textMax: number) => Promise<Snapshot | Walk | undefined>
}

/** The plants with an id above `after`: no more than `limit`, or all of them if it is undefined. */
export async function listPlants(
  plants: Plants,
  account: string,
  request: { readonly after: bigint | undefined; readonly limit: number | undefined },
  takeTurn: TakeTurn,
): Promise<Snapshot | Walk | LargeSnapshot> {
  const { after, limit = Number.POSITIVE_INFINITY } = request
  if (limit === 0) return { plants: [], next: undefined }
  const range = { after, limit: Math.min(limit, pagePlants) }
  const small = await snapshot(smallTextMax)
  if (small !== undefined) return small
  const isLonger =
    limit > pagePlants && (await plants.nthId(account, after, pagePlants + 1)) !== undefined
  return isLonger
    ? await walked()
    : {
        read: async (textMax) =>
          (await snapshot(textMax)) ?? (textMax === pageTextMax ? walked() : undefined),
      }

  async function snapshot(textMax: number): Promise<Snapshot | Walk | undefined> {
    const page = await plants.list(account, { ...range, textMax })
    if (!page.more) return { plants: page.plants, next: undefined }
    if (page.plants.length === limit) return { plants: page.plants, next: page.plants.at(-1)?.id }
    return page.plants.length === range.limit ? await walked() : undefined
  }

  async function walked(): Promise<Walk> {
    const upTo =
      limit === Number.POSITIVE_INFINITY
        ? undefined
        : await limitEnd(plants, account, after, limit, takeTurn)
    const isCut = upTo !== undefined && (await plants.nthId(account, upTo, 1)) !== undefined
    return {
      pages: {
        [Symbol.asyncIterator]: () => walk(plants, account, { after, upTo, limit }, takeTurn),
      },
      next: isCut ? upTo : undefined,
    }
  }
}

/**
 * The id of the last plant within a limit, or undefined if there are fewer plants. It is found
 * before the first plant is sent, because the link to what follows goes ahead of them.
 */
async function limitEnd(
  plants: Plants,
  account: string,
  after: bigint | undefined,
  limit: number,
  takeTurn: TakeTurn,
): Promise<bigint | undefined> {
  let upTo = after
  for (let counted = 0; counted < limit; counted += pagePlants) {
    upTo = await plants.nthId(account, upTo, Math.min(pagePlants, limit - counted))
    if (upTo === undefined) return undefined
    await takeTurn(walkPageTextMax)
  }
  return upTo
}

/**
 * The pages of a list. If there is a limit, the link was sent first and fixed the last plant, so
 * the walk ends at that very plant. It breaks off if others create so many plants meanwhile that
 * the limit would be exceeded: a list must not leave one out in silence.
 */
async function* walk(
  plants: Plants,
  account: string,
  range: Pick<PlantRange, 'after' | 'upTo' | 'limit'>,
  takeTurn: TakeTurn,
): AsyncGenerator<readonly IdentifiedPlant[]> {
  let { after, limit: left } = range
  let more = true
  // No variable keeps a page, so that no page stays in memory while its reader stands still.
  const nextPage = async (): Promise<readonly IdentifiedPlant[]> => {
    const limit = Math.min(left, walkPagePlants)
    const page = await plants.list(account, {
      after,
      // A page of a walk has an end, even if that is the last id there is.
      upTo: range.upTo ?? idMax,
      limit,
      textMax: walkPageTextMax,
    })
    more = page.more
    left -= page.plants.length
    after = page.plants.at(-1)?.id
    return page.plants
  }
  while (more) {
    if (left === 0)
      throw new Failure(
        'store-unavailable',
        'The list was overtaken by new plants; ask for it with a smaller limit.',
      )
    yield await nextPage()
    await takeTurn(walkPageTextMax)
  }
}
