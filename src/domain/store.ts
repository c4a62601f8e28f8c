// What the service asks of a store: each promise is written here once and held by the
// conformance suite (test/stores/conformance.ts) on every store there is.
import type { IdentifiedPlant, KeptPlant } from './plant.ts'
import type { KeptToken, Token, TokenHash } from './token.ts'

/**
 * A store that answers from memory or a local file may answer at once; one over a network cannot.
 */
export type Answer<Value> = Value | Promise<Value>

/** A part of an account's list, as it stood at one moment. */
export interface Page<Listed extends IdentifiedPlant = IdentifiedPlant> {
  /** In ascending order of id. */
  readonly plants: readonly Listed[]
  /** Whether the account held further plants after these at that moment. */
  readonly more: boolean
}

export interface PlantRange {
  /** Only plants with an id above this one. */
  readonly after?: bigint | undefined
  /** Only plants with an id up to this one. */
  readonly upTo?: bigint | undefined
  /** No more plants than this. */
  readonly limit: number
  /**
   * Text after which a page ends early, in UTF-16 code units or bytes of names and tags; absent:
   * `pageTextMax`.
   */
  readonly textMax?: number
}

export interface TokenRange {
  /** Only tokens with a hash above this one, byte by byte. */
  readonly after?: TokenHash | undefined
  /** Only tokens with a hash up to this one. */
  readonly upTo?: TokenHash | undefined
  /** No more tokens than this. */
  readonly limit: number
}

/**
 * Every operation is one atomic step on one account, and fails in one of two ways only: with
 * `store-unavailable`, when it did nothing, or, for a write, with `outcome-unknown`.
 *
 * A write that has returned is durable: it survives the death of the process and of the machine.
 * A read that starts after a write has returned sees it. Accounts never touch one another.
 */
export interface Store {
  /**
   * Keeps a plant. Where the account already holds the id nothing changes, and the answer is the
   * plant that is there; otherwise it is undefined. Of several creators of one id exactly one
   * gets undefined. An id is free again once its plant is deleted.
   */
  createPlant(account: string, plant: KeptPlant): Promise<KeptPlant | undefined>

  /**
   * Removes a plant; says whether it was there. Of several removers of one plant exactly one gets
   * true.
   */
  deletePlant(account: string, id: bigint): Promise<boolean>

  /**
   * The first plants of a range, as one snapshot. A page may end early, with `more` set, where
   * its text exceeds the bound; it then holds at least one.
   */
  listPlants(account: string, range: PlantRange): Answer<Page>

  /** As `listPlants`, with all that is kept of each plant: to copy them into another store. */
  keptPlants(account: string, range: PlantRange): Answer<Page<KeptPlant>>

  /** How many plants the store holds, over all accounts. */
  countPlants(): Answer<number>

  /**
   * The id of the n-th plant of an account above `after`, counting from 1, or undefined where there
   * are fewer.
   */
  nthPlantId(account: string, after: bigint | undefined, n: number): Answer<bigint | undefined>

  /** Keeps a token's record under its hash. */
  issueToken(token: Token, hash: TokenHash): Promise<void>

  /** As `issueToken`, but only where the store holds no token at all; says whether it did. */
  issueFirstToken(token: Token, hash: TokenHash): Promise<boolean>

  /**
   * The token under a hash, usable or not. A token is found as soon as it is issued; what any
   * process has changed of it since is seen after `tokenDelayMs` at the latest.
   */
  findToken(hash: TokenHash): Answer<Token | undefined>

  /** How long a revoked token may still be found as it was before. 0: not at all. */
  readonly tokenDelayMs: number

  /** All tokens, of one account or of all, oldest first. */
  listTokens(account?: string): Answer<readonly Token[]>

  /**
   * The first tokens of a range, in the order of their hashes: to copy them. Every account that has
   * plants has a token.
   */
  keptTokens(range: TokenRange): Answer<readonly KeptToken[]>

  /** Whether the store holds a token at all. */
  hasTokens(): Answer<boolean>

  /**
   * Marks a token as revoked and answers its record; undefined where there is none. A second time
   * changes nothing.
   */
  revokeToken(id: string, nowMs: number): Promise<Token | undefined>

  /** Notes when a token was last used. */
  noteTokenUse(id: string, usedAtMs: number): Promise<void>

  /**
   * Returns once the store has shown that it can be read and would take a write; nothing is written
   * for it.
   */
  ready(): Promise<void>

  /**
   * Finishes every write that was asked for, then lets go of all resources. A second call waits for
   * the first.
   */
  close(): Promise<void>
}

/** What a page may hold in memory, whatever its plants weigh. */
export const pageTextMax = 16 * 1024 * 1024
