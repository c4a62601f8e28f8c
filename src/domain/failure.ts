// A failure that a caller is told of. It is thrown where it is found and caught in one place
// (http/answer.ts); a table of the contract says how each looks on the wire (contract/refusals.ts).

/** The closed list of what the domain refuses. */
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
 * An expected refusal; any other error is a defect. `detail` is what the table makes its sentence and
 * its header of: the scope that is missing, or the whole sentence if there are many. It holds no
 * secret and no internals. `cause` is for the log alone.
 */
export class Failure<Refusal extends string = DomainRefusal> extends Error {
  readonly refusal: Refusal
  readonly detail: string

  constructor(refusal: Refusal, detail = '', options?: { readonly cause: unknown }) {
    super(detail || refusal, options)
    this.name = 'Failure'
    this.refusal = refusal
    this.detail = detail
  }
}
