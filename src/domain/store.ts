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
 * Every operation of a store is one atomic step on one account, and fails in one of two ways only:
 * with `store-unavailable`, when it did nothing, or, for a write, with `outcome-unknown`.
 *
 * A write that has returned is durable: it survives the death of the process and of the machine.
 * A read that starts after a write has returned sees it. Accounts never touch one another.
 */
export interface Store {
  readonly plants: Plants
  readonly tokens: Tokens
  readonly kept: Copyable

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

export interface Plants {
  /**
   * Keeps a plant. If the account already holds the id nothing changes, and the answer is the
   * plant that is there; otherwise it is undefined. Of several creators of one id exactly one
   * gets undefined. An id is free again once its plant is deleted.
   */
  create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined>

  /**
   * Removes a plant; says whether it was there. Of several removers of one plant exactly one gets
   * true.
   */
  delete(account: string, id: bigint): Promise<boolean>

  /**
   * The first plants of a range, as one snapshot. A page may end early, with `more` set, if its
   * text exceeds the bound; it then holds at least one.
   */
  list(account: string, range: PlantRange): Answer<Page>

  /**
   * The id of the n-th plant of an account above `after`, counting from 1, or undefined if there
   * are fewer.
   */
  nthId(account: string, after: bigint | undefined, n: number): Answer<bigint | undefined>
}

export interface Tokens {
  /** How long a revoked token may still be found as it was before. 0: not at all. */
  readonly delayMs: number

  /** Keeps a token's record under its hash. */
  issue(token: Token, hash: TokenHash): Promise<void>

  /** As `issue`, but only if the store holds no token at all; says whether it did. */
  issueFirst(token: Token, hash: TokenHash): Promise<boolean>

  /**
   * The token under a hash, usable or not. A token is found as soon as it is issued; what any
   * process has changed of it since is seen after `delayMs` at the latest.
   */
  find(hash: TokenHash): Answer<Token | undefined>

  /** All tokens, of one account or of all, oldest first. */
  list(account?: string): Answer<readonly Token[]>

  /** Whether the store holds a token at all. */
  any(): Answer<boolean>

  /**
   * Marks a token as revoked and answers its record; undefined if there is none. A second time
   * changes nothing.
   */
  revoke(id: string, nowMs: number): Promise<Token | undefined>

  /** Notes when a token was last used. */
  noteUse(id: string, usedAtMs: number): Promise<void>
}

/** All that a store keeps, to copy it into another one. */
export interface Copyable {
  /** As `list` of `Plants`, with all that is kept of each plant. */
  plants(account: string, range: PlantRange): Answer<Page<KeptPlant>>

  /** How many plants the store holds, over all accounts. */
  countPlants(): Answer<number>

  /**
   * The first tokens of a range, in the order of their hashes. Every account that has plants has a
   * token.
   */
  tokens(range: TokenRange): Answer<readonly KeptToken[]>
}

/** What a page may hold in memory, whatever its plants weigh. */
export const pageTextMax = 16 * 1024 * 1024
