// The closed list of refusals that the domain knows. A refusal is thrown where it is found and
// caught in one place; how it looks on the wire is decided by one table in src/contract.

export type DomainRefusal =
  | 'input-invalid'
  | 'token-missing'
  | 'token-refused'
  | 'scope-missing'
  | 'plant-missing'
  | 'id-taken'
  | 'idempotency-key-reused'
  /** The store could not be asked, or was asked and did nothing. */
  | 'store-unavailable'
  /** The store was asked to write and it is not known whether it did. */
  | 'outcome-unknown'

/**
 * An expected refusal. `message` is one English sentence for the caller: it names the field and
 * what is wrong with it, is the same for the same condition, and carries no secret and no
 * internals. `detail` is what the refusal's headers need, such as the scope that was missing;
 * `cause` is for the log alone.
 */
export class Failure<Refusal extends string = DomainRefusal> extends Error {
  readonly refusal: Refusal
  readonly detail: string | undefined

  constructor(
    refusal: Refusal,
    message: string,
    options: { detail?: string; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'Failure'
    this.refusal = refusal
    this.detail = options.detail
  }
}
