// Copying all plants and tokens from one store to another: what is there already is compared and
// never overwritten, so that a copy that was interrupted goes on if it is begun again.
import type { KeptPlant } from '../domain/plant.ts'
import type { Store } from '../domain/store.ts'
import type { TokenHash } from '../domain/token.ts'
import { Refused } from '../refused.ts'
import { hex, pages, summaryOfAccount, textOfPlant, textOfToken, tokensAtOnce } from './summary.ts'

/** Of each of so many accounts a copy holds a page of plants in memory. */
const accountsAtOnce = 8

export interface CopyOptions {
  /** Told of each further part of a phase that is done: tokens first, then plants. */
  readonly progress: (phase: 'tokens' | 'copying' | 'verifying', count: number) => void
  /** Ends the copy early: it then rejects with the reason of the signal. */
  readonly signal: AbortSignal
}

export interface Copied {
  readonly plants: number
  readonly accounts: number
  readonly tokens: number
}

/**
 * Resolves once the second store holds every token of the first, and just the same plants for each
 * of its accounts; rejects with Refused.
 */
export async function copyStore(from: Store, to: Store, options: CopyOptions): Promise<Copied> {
  const { tokens, accounts } = await copyTokens(from, to, options)
  await forEach(accounts, (account) => copyAccount(from, to, account, options))
  let plants = 0
  await forEach(accounts, async (account) => {
    const [source, target] = await Promise.all([
      summaryOfAccount(from.kept, account, {
        progress: (count) => options.progress('verifying', count),
        signal: options.signal,
      }),
      summaryOfAccount(to.kept, account),
    ])
    if (source.plants !== target.plants || source.checksum !== target.checksum)
      throw new Refused(
        `The account ${JSON.stringify(account)} is not the same in both stores: ${source.plants} plants with the checksum ${source.checksum}, and ${target.plants} with ${target.checksum}. Stop all writers and copy again.`,
      )
    plants += source.plants
  })
  const held = await from.kept.countPlants()
  if (held !== plants)
    throw new Refused(
      `The store to copy from holds ${held} plants, of which ${plants} were found through its tokens; is it still written to?`,
    )
  return { plants, accounts: accounts.size, tokens }
}

async function copyTokens(
  from: Store,
  to: Store,
  { progress, signal }: CopyOptions,
): Promise<{ tokens: number; accounts: ReadonlySet<string> }> {
  const accounts = new Set<string>()
  let tokens = 0
  let after: TokenHash | undefined
  for (;;) {
    signal.throwIfAborted()
    const page = await from.kept.tokens({ after, limit: tokensAtOnce })
    const upTo = page.at(-1)?.hash
    if (upTo === undefined) return { tokens, accounts }
    const missing = new Map(page.map((token) => [hex(token.hash), token]))
    // The other store may hold any number of tokens between those of the page.
    for (let seen = after; ; ) {
      const present = await to.kept.tokens({ after: seen, upTo, limit: tokensAtOnce })
      for (const token of present) {
        const copied = missing.get(hex(token.hash))
        if (copied !== undefined && textOfToken(copied) !== textOfToken(token))
          throw new Refused(
            `The token ${token.id} is in both stores and differs; nothing of it was changed.`,
          )
        missing.delete(hex(token.hash))
      }
      if (present.length < tokensAtOnce) break
      seen = present.at(-1)?.hash
    }
    await Promise.all(missing.values().map((token) => to.tokens.issue(token, token.hash)))
    for (const { account } of page) accounts.add(account)
    tokens += page.length
    after = upTo
    progress('tokens', page.length)
  }
}

async function copyAccount(
  from: Store,
  to: Store,
  account: string,
  { progress, signal }: CopyOptions,
): Promise<void> {
  let after: bigint | undefined
  signal.throwIfAborted()
  for await (const plants of pages(from.kept, account)) {
    signal.throwIfAborted()
    const upTo = plants.at(-1)?.id
    // What the other store holds of this range must be among these, and just so.
    const missing = new Map(plants.map((plant) => [plant.id, plant]))
    for await (const present of pages(to.kept, account, { after, upTo }))
      for (const plant of present) {
        const wanted = missing.get(plant.id)
        if (wanted === undefined) throw notInSource(account, plant.id)
        requireSame(account, plant, wanted)
        missing.delete(plant.id)
      }
    const creates = [...missing.values()].map(async (plant) => {
      const inTheWay = await to.plants.create(account, plant)
      if (inTheWay !== undefined) requireSame(account, inTheWay, plant)
    })
    await Promise.all(creates)
    after = upTo
    progress('copying', plants.length)
  }
  const { plants } = await to.kept.plants(account, { after, limit: 1 })
  for (const { id } of plants) throw notInSource(account, id)
}

function notInSource(account: string, id: bigint): Refused {
  return new Refused(
    `Plant ${id} of the account ${JSON.stringify(account)} is only in the store to copy to. What was copied is kept. Copy into a store without plants of this account.`,
  )
}

function requireSame(account: string, one: KeptPlant, other: KeptPlant): void {
  if (textOfPlant(one) === textOfPlant(other)) return
  throw new Refused(
    `Plant ${one.id} of the account ${JSON.stringify(account)} differs between the two stores; it was not changed, and what was copied is kept. Copy into a store without plants of this account, and stop all writers first.`,
  )
}

/** Does the work for each item, a few at a time; if one fails, no further one is begun. */
async function forEach<Item>(
  items: Iterable<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  let failed = false
  const worker = async (): Promise<void> => {
    for (let next = rest.next(); !next.done && !failed; next = rest.next()) {
      try {
        await work(next.value)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: accountsAtOnce }, worker))
  for (const result of ended) if (result.status === 'rejected') throw result.reason
}
