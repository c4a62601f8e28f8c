// Copying all plants and tokens from one store to another: what is there already is compared and never
// overwritten, so that a copy that was interrupted goes on where it is begun again.
import { createHash } from 'node:crypto'
import type { KeptPlant } from './plant.ts'
import type { Page, PlantRange, Store } from './store.ts'
import type { KeptToken } from './token.ts'

/** Plants and text in a page, and accounts at a time: what a copy holds in memory. */
const pagePlants = 1000
const pageTextMax = 1024 * 1024
const accountsAtOnce = 8

/** The copy cannot go on, or did not succeed: `message` is a sentence for the operator. */
export class CopyRefused extends Error {}

export interface CopyOptions {
  /** Told of each further part of a phase that is done, in plants. */
  readonly progress: (phase: 'copying' | 'verifying', plants: number) => void
  /** Throws where the copy shall end early. */
  readonly goOn: () => void
}

export interface Copied {
  readonly plants: number
  readonly accounts: number
  readonly tokens: number
}

/** Resolves once both stores hold the same tokens, and the same plants for each account of the first; rejects with CopyRefused. */
export async function copyStore(from: Store, to: Store, options: CopyOptions): Promise<Copied> {
  const tokens = await from.listTokens()
  const accounts = [...new Set(tokens.map(({ account }) => account))]
  await copyTokens(tokens, to)
  await forEach(accounts, (account) => copyAccount(from, to, account, options))
  let plants = 0
  await forEach(accounts, async (account) => {
    const verified = await verifyAccount(from, to, account, options)
    plants += verified
  })
  const held = await from.countPlants()
  if (held !== plants)
    throw new CopyRefused(
      `The store to copy from holds ${held} plants, of which ${plants} were found through its tokens; is it still written to?`,
    )
  return { plants, accounts: accounts.length, tokens: tokens.length }
}

async function copyTokens(tokens: readonly KeptToken[], to: Store): Promise<void> {
  const present = new Map((await to.listTokens()).map((token) => [token.id, token]))
  for (const token of tokens) {
    const other = present.get(token.id)
    if (other === undefined) await to.issueToken(token, token.hash)
    else if (textOfToken(other) !== textOfToken(token))
      throw new CopyRefused(`The token ${token.id} is in both stores and differs; nothing of it was changed.`)
  }
}

/** All of a token but its last use, which may have moved on. */
function textOfToken({ hash, id, account, label, scopes, createdAtMs, expiresAtMs, revokedAtMs }: KeptToken): string {
  const hex = Buffer.from(hash).toString('hex')
  return JSON.stringify([hex, id, account, label, scopes, createdAtMs, expiresAtMs, revokedAtMs])
}

async function copyAccount(from: Store, to: Store, account: string, { progress, goOn }: CopyOptions): Promise<void> {
  let after: bigint | undefined
  for await (const plants of pages(from, account)) {
    goOn()
    const upTo = plants.at(-1)?.id
    const missing = await missingIn(to, account, plants, { after, upTo })
    await Promise.all(missing.map((plant) => create(to, account, plant)))
    after = upTo
    progress('copying', plants.length)
  }
  const { plants } = await to.keptPlants(account, { after, limit: 1 })
  for (const { id } of plants) throw differs(account, id)
}

/** Those of a range's plants that the other store lacks; all others must be there just so, and no more. */
async function missingIn(
  to: Store,
  account: string,
  plants: readonly KeptPlant[],
  range: Pick<PlantRange, 'after' | 'upTo'>,
): Promise<readonly KeptPlant[]> {
  const wanted = new Map(plants.map((plant) => [plant.id, plant]))
  for await (const present of pages(to, account, range)) {
    for (const plant of present) {
      if (textOfPlant(plant) !== textOfPlant(wanted.get(plant.id))) throw differs(account, plant.id)
      wanted.delete(plant.id)
    }
  }
  return [...wanted.values()]
}

async function create(to: Store, account: string, plant: KeptPlant): Promise<void> {
  const present = await to.createPlant(account, plant)
  if (present !== undefined && textOfPlant(present) !== textOfPlant(plant)) throw differs(account, plant.id)
}

function differs(account: string, id: bigint): CopyRefused {
  return new CopyRefused(
    `Plant ${id} of the account ${JSON.stringify(account)} differs between the two stores; it was not changed. Copy into an empty store, and stop all writers first.`,
  )
}

/** Rejects unless both stores hold the same plants for an account; resolves to how many. */
async function verifyAccount(from: Store, to: Store, account: string, options: CopyOptions): Promise<number> {
  const [source, target] = await Promise.all([summaryOf(from, account, options), summaryOf(to, account)])
  if (source.plants !== target.plants || source.checksum !== target.checksum)
    throw new CopyRefused(
      `The account ${JSON.stringify(account)} is not the same in both stores: ${source.plants} plants with the checksum ${source.checksum}, and ${target.plants} with ${target.checksum}. Stop all writers and copy again.`,
    )
  return source.plants
}

interface Summary {
  readonly plants: number
  /** SHA-256 over all plants in the order of their ids, in hexadecimal. */
  readonly checksum: string
}

async function summaryOf(store: Store, account: string, options?: CopyOptions): Promise<Summary> {
  const hash = createHash('sha256')
  let count = 0
  for await (const plants of pages(store, account)) {
    options?.goOn()
    hash.update(plants.map(textOfPlant).join('\n'))
    hash.update('\n')
    count += plants.length
    options?.progress('verifying', plants.length)
  }
  return { plants: count, checksum: hash.digest('hex') }
}

function textOfPlant(plant: KeptPlant | undefined): string {
  return plant === undefined ? '' : JSON.stringify([String(plant.id), plant.name, plant.tag, plant.idempotencyKey])
}

/** The plants of an account in ascending order of id. */
async function* pages(
  store: Store,
  account: string,
  { after: start, upTo }: Pick<PlantRange, 'after' | 'upTo'> = {},
): AsyncGenerator<readonly KeptPlant[]> {
  let after = start
  for (;;) {
    const page: Page<KeptPlant> = await store.keptPlants(account, { after, upTo, limit: pagePlants, textMax: pageTextMax })
    if (page.plants.length > 0) yield page.plants
    if (!page.more) return
    after = page.plants.at(-1)?.id
  }
}

/** Does the work for each item, a few at a time; where one fails, no further one is begun. */
async function forEach<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = items.values()
  let failed = false
  const worker = async (): Promise<void> => {
    for (const item of rest) {
      if (failed) return
      try {
        await work(item)
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: accountsAtOnce }, worker))
  for (const result of ended) if (result.status === 'rejected') throw result.reason
}
