// An expected failure, of which the caller is told. It is thrown at the place that finds it and
// caught in http/answer.ts. The table in contract/refusals.ts says how each looks on the wire.

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
 * An expected refusal; any other error is a defect. The table makes its sentence and its header
 * from `detail`: the missing scope, for instance, or the whole sentence if a refusal has many.
 * `detail` holds no secret and no internals. `cause` is for the log alone.
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
