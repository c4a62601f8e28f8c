// Listing plants: up to a thousand as one snapshot, more than that as a walk in pages, so that
// neither memory nor a snapshot is held for a slow reader.
import { Failure } from './failure.ts'
import type { IdentifiedPlant } from './plant.ts'
import type { Store } from './store.ts'

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

/** Where a list goes on when its limit cut it: `next` is the last id within the limit, else undefined. */
export type PlantList = { readonly next: bigint | undefined } & (
  | { readonly plants: readonly IdentifiedPlant[] }
  /** Its beginning is read already; the rest is read anew by each who iterates. */
  | { readonly pages: AsyncIterable<readonly IdentifiedPlant[]> }
)

export async function listPlants(store: Store, account: string, request: ListRequest): Promise<PlantList> {
  const { after, limit = Number.POSITIVE_INFINITY } = request
  if (limit === 0) return { plants: [], next: undefined }
  const { plants, more } = await store.listPlants(account, { after, limit: Math.min(limit, pagePlants) })
  if (!more) return { plants, next: undefined }
  if (plants.length === limit) return { plants, next: plants.at(-1)?.id }
  const first = beginning(plants)
  const left = limit - first.length
  const end = limit === Number.POSITIVE_INFINITY ? noEnd : await limitEnd(store, account, lastId(first), left)
  return { pages: { [Symbol.asyncIterator]: () => walk(store, account, first, end.upTo, limit) }, next: end.next }
}

interface LimitEnd {
  /** The last plant within the limit, or undefined where there are fewer plants. */
  readonly upTo: bigint | undefined
  /** The same where further plants follow it, else undefined. */
  readonly next: bigint | undefined
}

const noEnd: LimitEnd = { upTo: undefined, next: undefined }

/** Finds where a limit ends before the first plant is sent, because the link to what follows goes ahead of them. */
async function limitEnd(store: Store, account: string, after: bigint, limit: number): Promise<LimitEnd> {
  let upTo: bigint | undefined = after
  for (let counted = 0; counted < limit; counted += pagePlants) {
    upTo = await store.nthPlantId(account, upTo, Math.min(pagePlants, limit - counted))
    if (upTo === undefined) return noEnd
    await turnOfOthers()
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
    await turnOfOthers()
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

/** Lets everything else that waits for the event loop go first. */
function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
