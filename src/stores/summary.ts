// What a store holds, in counts and checksums, by which it can be compared with another one.
import { createHash } from 'node:crypto'
import { type KeptPlant, plantTexts } from '../domain/plant.ts'
import type { Copyable, PlantPage, PlantRange } from '../domain/store.ts'
import type { KeptToken, TokenHash } from '../domain/token.ts'
import { Refused } from '../refused.ts'

/**
 * What is held in memory at once, beside the names of the accounts. The text is that of the plants
 * of one account, in UTF-16 code units.
 */
const plantsAtOnce = 1000
const textAtOnce = 1024 * 1024
export const tokensAtOnce = 1000

export interface SummaryOptions {
  /** Told of further plants that were read, and of how many there are in all. */
  readonly progress: (plants: number, total: number) => void
  /** Ends the work early: it then rejects with the reason of the signal. */
  readonly signal: AbortSignal
}

export interface Summary {
  readonly plants: number
  readonly accounts: number
  readonly tokens: number
  /**
   * SHA-256, in hexadecimal digits, of all plants and all tokens but the last uses of these. Equal
   * for two stores of any kind that hold the same.
   */
  readonly checksum: string
}

/** Reads all that a store holds. Rejects with Refused if it does not fit together. */
export async function summaryOf(kept: Copyable, options: SummaryOptions): Promise<Summary> {
  const hash = createHash('sha256')
  const accounts = new Set<string>()
  let tokens = 0
  for (let after: TokenHash | undefined; ; ) {
    options.signal.throwIfAborted()
    const page = await kept.tokens({ after, limit: tokensAtOnce })
    for (const token of page) {
      accounts.add(token.account)
      hash.update(`${hex(token.hash)} ${textOfToken(token)}\n`)
    }
    tokens += page.length
    after = page.at(-1)?.hash
    if (after === undefined) break
  }
  const held = await kept.countPlants()
  let plants = 0
  for (const account of [...accounts].sort()) {
    const summary = await summaryOfAccount(kept, account, {
      progress: (count) => options.progress(count, held),
      signal: options.signal,
    })
    hash.update(`${JSON.stringify([account, summary.plants, summary.checksum])}\n`)
    plants += summary.plants
  }
  if (held !== plants)
    throw new Refused(
      `The store holds ${held} plants, but the accounts of its tokens have ${plants}; is it written to, or has it lost tokens?`,
    )
  return { plants, accounts: accounts.size, tokens, checksum: hash.digest('hex') }
}

/** How many plants an account has, and the SHA-256 over all of them in the order of their ids. */
export async function summaryOfAccount(
  kept: Copyable,
  account: string,
  options?: {
    readonly progress: (plants: number) => void
    readonly signal: AbortSignal
  },
): Promise<{ plants: number; checksum: string }> {
  const hash = createHash('sha256')
  let count = 0
  for await (const plants of pages(kept, account)) {
    options?.signal.throwIfAborted()
    hash.update(plants.map(textOfPlant).join('\n'))
    hash.update('\n')
    count += plants.length
    options?.progress(plants.length)
  }
  return { plants: count, checksum: hash.digest('hex') }
}

/** The plants of an account in ascending order of id. */
export async function* pages(
  kept: Copyable,
  account: string,
  { after: start, upTo }: Pick<PlantRange, 'after' | 'upTo'> = {},
): AsyncGenerator<readonly KeptPlant[]> {
  let after = start
  for (;;) {
    const page: PlantPage<KeptPlant> = await kept.plants(account, {
      after,
      upTo,
      limit: plantsAtOnce,
      textMax: textAtOnce,
    })
    if (page.plants.length > 0) yield page.plants
    if (!page.more) return
    after = page.plants.at(-1)?.id
    // A file answers at once, and would let no request to stop through.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export function textOfPlant(plant: KeptPlant): string {
  const texts = plantTexts.map((member) => plant[member])
  return JSON.stringify([String(plant.id), ...texts, plant.idempotencyKey])
}

/** All of a token but its last use, which may have moved on. */
export function textOfToken({
  id,
  account,
  label,
  scopes,
  createdAtMs,
  expiresAtMs,
  revokedAtMs,
}: KeptToken): string {
  return JSON.stringify([id, account, label, scopes, createdAtMs, expiresAtMs, revokedAtMs])
}

export function hex(hash: TokenHash): string {
  return Buffer.from(hash).toString('hex')
}
