// Listing plants: up to a thousand as one snapshot, more than that as a walk in pages, so that
// neither memory nor a snapshot is held for a slow reader.
import { Failure } from './failure.ts'
import type { Pace } from './pace.ts'
import type { IdentifiedPlant } from './plant.ts'
import type { Page, Store } from './store.ts'

/** Plants in the first page, and so the longest list that is one snapshot. */
export const pagePlants = 1000

/** Plants and text in a page of a longer list: little, so that others wait less and less is held. */
const walkPagePlants = 200
const walkPageTextMax = 128 * 1024

export interface ListRequest {
  /** Only plants with an id above this one. */
  readonly after?: bigint | undefined
  /** No more plants than this; absent: every plant. */
  readonly limit?: number | undefined
}

/** If the limit cut a list, `next` is the last id within the limit: there the list goes on. */
export interface Snapshot {
  readonly plants: readonly IdentifiedPlant[]
  readonly next: bigint | undefined
}

export interface Walk {
  /** The beginning is read already; each iteration reads the rest by itself. */
  readonly pages: AsyncIterable<readonly IdentifiedPlant[]>
  readonly next: bigint | undefined
}

/** A snapshot with much text, up to `pageTextMax`: it is read when there is room for it. */
export interface LargeSnapshot {
  readonly read: () => Promise<Snapshot | Walk>
}

export async function listPlants(
  store: Store,
  account: string,
  request: ListRequest,
  pace: Pace,
): Promise<Snapshot | Walk | LargeSnapshot> {
  const { after, limit = Number.POSITIVE_INFINITY } = request
  if (limit === 0) return { plants: [], next: undefined }
  const range = { after, limit: Math.min(limit, pagePlants) }
  const page = await store.listPlants(account, { ...range, textMax: walkPageTextMax })
  const cutByText = page.more && page.plants.length < range.limit
  const isLonger = cutByText && limit > range.limit && (await store.nthPlantId(account, after, pagePlants + 1)) !== undefined
  if (!cutByText || isLonger) return await listFrom(page)
  return { read: async () => listFrom(await store.listPlants(account, range)) }

  async function listFrom({ plants, more }: Page): Promise<Snapshot | Walk> {
    if (!more) return { plants, next: undefined }
    if (plants.length === limit) return { plants, next: plants.at(-1)?.id }
    const first = beginning(plants)
    const left = limit - first.length
    const end = limit === Number.POSITIVE_INFINITY ? noEnd : await limitEnd(store, account, lastId(first), left, pace)
    return { pages: { [Symbol.asyncIterator]: () => walk(store, account, first, end.upTo, limit, pace) }, next: end.next }
  }
}

interface LimitEnd {
  /** The last plant within the limit, or undefined where there are fewer plants. */
  readonly upTo: bigint | undefined
  /** The same where further plants follow it, else undefined. */
  readonly next: bigint | undefined
}

const noEnd: LimitEnd = { upTo: undefined, next: undefined }

/** Finds where a limit ends before the first plant is sent, because the link to what follows goes ahead of them. */
async function limitEnd(store: Store, account: string, after: bigint, limit: number, pace: Pace): Promise<LimitEnd> {
  let upTo: bigint | undefined = after
  for (let counted = 0; counted < limit; counted += pagePlants) {
    upTo = await store.nthPlantId(account, upTo, Math.min(pagePlants, limit - counted))
    if (upTo === undefined) return noEnd
    await pace.turn(walkPageTextMax)
  }
  const following = await store.nthPlantId(account, upTo, 1)
  return { upTo, next: following === undefined ? undefined : upTo }
}

/**
 * What was read before the list began, and the pages after it. Where the list ends was said too, so the
 * walk ends at that very plant; where others created so many plants meanwhile that the limit would be
 * exceeded, it breaks off, because a list that silently leaves one out would be a lie.
 */
async function* walk(
  store: Store,
  account: string,
  first: readonly IdentifiedPlant[],
  upTo: bigint | undefined,
  limit: number,
  pace: Pace,
): AsyncGenerator<readonly IdentifiedPlant[]> {
  yield first
  let after = lastId(first)
  let left = limit - first.length
  for (;;) {
    const page = await store.listPlants(account, { after, upTo, limit: Math.min(left, walkPagePlants), textMax: walkPageTextMax })
    if (page.plants.length > 0) yield page.plants
    if (!page.more) return
    left -= page.plants.length
    if (left === 0) {
      throw new Failure('store-unavailable', 'The list was overtaken by new plants; ask for it with a smaller limit.')
    }
    after = lastId(page.plants)
    await pace.turn(walkPageTextMax)
  }
}

/** As much of a page as the walk holds at a time. */
function beginning(plants: readonly IdentifiedPlant[]): readonly IdentifiedPlant[] {
  let text = 0
  const end = plants.findIndex(({ name, tag }, index) => {
    if (index === walkPagePlants || text > walkPageTextMax) return true
    text += name.length + (tag?.length ?? 0)
    return false
  })
  return end === -1 ? plants : plants.slice(0, end)
}

function lastId(plants: readonly IdentifiedPlant[]): bigint {
  const last = plants.at(-1)
  if (last === undefined) throw new RangeError('a page with more plants after it holds at least one')
  return last.id
}
