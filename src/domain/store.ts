// What the service asks of a store. Each promise is written here once, and the conformance suite
// (test/stores/conformance.ts) holds every store to it.
import type { IdentifiedPlant, KeptPlant } from './plant.ts'
import type { KeptToken, Token, TokenHash } from './token.ts'

/** A store answers at once if it reads memory or a local file, and later if it asks a network. */
export type Awaitable<Value> = Value | Promise<Value>

/** A part of an account's list, as it stood at one moment. */
export interface PlantPage<Listed extends IdentifiedPlant = IdentifiedPlant> {
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
 * Every write is one atomic step on one account, and every list shows one moment. An operation
 * fails in one of two ways only: with `store-unavailable` if it did nothing, or, for a write, with
 * `outcome-unknown`.
 *
 * A write that has returned is durable: it survives the death of the process and of the machine.
 * A read that starts after a write has returned sees it. Accounts never touch one another.
 */
export interface Store {
  readonly plants: Plants
  readonly tokens: Tokens
  readonly kept: Copyable

  /**
   * Resolves once the store has shown that it can be read and takes writes. It changes no plant and
   * no token for that.
   */
  ready(): Promise<void>

  /** How many writes were asked for and are not settled yet. */
  waitingWrites(): number

  /** How many bytes the store takes on its disk. Fails with `store-unavailable`. */
  bytes(): Awaitable<number>

  /**
   * Finishes every write that was asked for, then frees all resources. A second call waits for the
   * first.
   */
  close(): Promise<void>
}

export interface Plants {
  /**
   * Keeps a plant and returns undefined. If the account already holds the id, nothing changes and
   * the existing plant is returned. Of several creators of one id exactly one gets undefined. An id
   * is free again once its plant is deleted.
   */
  create(account: string, plant: KeptPlant): Promise<KeptPlant | undefined>

  /**
   * Removes a plant and returns whether it was there. Of several removers of one plant exactly one
   * gets true.
   */
  delete(account: string, id: bigint): Promise<boolean>

  /**
   * The first plants of a range, as one snapshot. A page whose text exceeds the bound may end
   * early, with `more` set; it then holds at least one plant.
   */
  list(account: string, range: PlantRange): Awaitable<PlantPage>

  /**
   * The id of the n-th plant of an account above `after`, counting from 1, or undefined if there
   * are fewer.
   */
  nthId(account: string, after: bigint | undefined, n: number): Awaitable<bigint | undefined>
}

export interface Tokens {
  /** How long `find` may still return a token as it was before its revocation. 0: not at all. */
  readonly delayMs: number

  /** Keeps a token's record under its hash. */
  issue(token: Token, hash: TokenHash): Promise<void>

  /** As `issue`, but only if the store holds no token at all. Returns whether it did. */
  issueFirst(token: Token, hash: TokenHash): Promise<boolean>

  /**
   * The token under a hash, usable or not. A token is found as soon as it is issued. A later change
   * by any process is seen after `delayMs` at the latest.
   */
  find(hash: TokenHash): Awaitable<Token | undefined>

  /** All tokens, of one account or of all, oldest first. */
  list(account?: string): Awaitable<readonly Token[]>

  /** Whether the store holds a token at all. */
  any(): Awaitable<boolean>

  /**
   * Marks a token as revoked and returns its record, or undefined if there is none. A second call
   * changes nothing.
   */
  revoke(id: string, nowMs: number): Promise<Token | undefined>

  /** Notes when a token was last used. */
  noteUse(id: string, usedAtMs: number): Promise<void>
}

/** All that a store keeps, to copy it into another one. */
export interface Copyable {
  /** As `list` of `Plants`, with all that is kept of each plant. */
  plants(account: string, range: PlantRange): Awaitable<PlantPage<KeptPlant>>

  /** How many plants an account has, or the store over all accounts. */
  countPlants(account?: string): Awaitable<number>

  /**
   * The first tokens of a range, in the order of their hashes. Tokens are never removed, so a
   * service's accounts are all found through them.
   */
  tokens(range: TokenRange): Awaitable<readonly KeptToken[]>
}

/** The text after which every page ends early, to bound the memory that it takes. */
export const pageTextMax = 16 * 1024 * 1024
