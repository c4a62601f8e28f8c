// How each refusal looks on the wire: the one table of failure status codes, sentences and headers.
import type { DomainRefusal } from '../domain/failure.ts'

/** Every reason for which a request can fail: the domain's, and those of HTTP itself. */
export type Refusal =
  | DomainRefusal
  | 'request-malformed'
  | 'path-unknown'
  | 'method-not-allowed'
  | 'method-unknown'
  | 'media-type-unsupported'
  | 'encoding-unsupported'
  | 'body-too-large'
  | 'internal'

const challenge = 'Bearer realm="plants"'
const retryAfter = { name: 'Retry-After', value: () => '1' }

/** The table. A sentence and a header are made from the failure's detail. */
export const refusals: {
  readonly [Each in Refusal]: {
    readonly status: number
    /** When this happens, for the OpenAPI document. */
    readonly when: string
    /** One English sentence. The same condition gets the same one. */
    readonly sentence: (detail: string) => string
    readonly header?: { readonly name: string; readonly value: (detail: string) => string }
    /** A real detail, for the OpenAPI document. Absent if the refusal has none. */
    readonly exampleDetail?: string
  }
} = {
  'request-malformed': {
    status: 400,
    when: 'The request line or the Host header is not valid.',
    sentence: (detail) => detail || 'Host must name this server exactly once.',
  },
  'input-invalid': {
    status: 400,
    when: 'The body, a parameter or a header is not valid.',
    sentence: (detail) => detail,
    exampleDetail: 'name must be a string, not a number.',
  },
  'token-missing': {
    status: 401,
    when: 'There is no bearer token.',
    sentence: () => 'A bearer token is needed: send Authorization: Bearer TOKEN.',
    header: { name: 'WWW-Authenticate', value: () => challenge },
  },
  'token-refused': {
    status: 401,
    when: 'The bearer token is unknown, malformed, expired or revoked.',
    sentence: () => 'The bearer token is not valid: it is unknown, malformed, expired or revoked.',
    header: {
      name: 'WWW-Authenticate',
      value: () =>
        `${challenge}, error="invalid_token", error_description="The bearer token is unknown, malformed, expired or revoked"`,
    },
  },
  'scope-missing': {
    status: 403,
    when: 'The bearer token lacks the scope that this operation needs.',
    sentence: (scope) => `The bearer token lacks the scope ${scope}.`,
    header: {
      name: 'WWW-Authenticate',
      value: (scope) => `${challenge}, error="insufficient_scope", scope="${scope}"`,
    },
    exampleDetail: 'plants:write',
  },
  'path-unknown': {
    status: 404,
    when: 'Nothing is at this path.',
    sentence: () => 'Nothing is at this path; /docs shows what there is.',
  },
  'plant-missing': {
    status: 404,
    when: "No plant of the caller's account has this id.",
    sentence: () => 'No plant has this id.',
  },
  'method-not-allowed': {
    status: 405,
    when: 'The path does not take this method.',
    sentence: (methods) => `The path takes these methods only: ${methods}.`,
    header: { name: 'Allow', value: (methods) => methods },
    exampleDetail: 'DELETE, OPTIONS',
  },
  'id-taken': {
    status: 409,
    when: "A plant of the caller's account already has this id. It is unchanged.",
    sentence: () => 'id is already taken by a plant of this account.',
  },
  'body-too-large': {
    status: 413,
    when: 'The body exceeds the limit. The rest of it is not read and the connection is closed.',
    sentence: (limitBytes) => `The body must not exceed ${limitBytes} bytes.`,
    header: { name: 'Connection', value: () => 'close' },
    exampleDetail: '1048576',
  },
  'media-type-unsupported': {
    status: 415,
    when: 'The body is not declared as JSON in UTF-8.',
    sentence: () => 'Content-Type must be application/json, in UTF-8.',
    header: { name: 'Accept', value: () => 'application/json' },
  },
  'encoding-unsupported': {
    status: 415,
    when: 'The body is compressed or otherwise encoded.',
    sentence: () => 'Content-Encoding must be identity or left out.',
    header: { name: 'Accept-Encoding', value: () => 'identity' },
  },
  'idempotency-key-reused': {
    status: 422,
    when: 'The idempotency key was first sent with another name or tag for this id.',
    sentence: () =>
      'Idempotency-Key was first sent with another name or tag for this id; use a new key for a new plant.',
  },
  internal: {
    status: 500,
    when: 'The service failed; its log says why.',
    sentence: () => 'The service failed to answer.',
  },
  'method-unknown': {
    status: 501,
    when: 'The method is not known.',
    sentence: () => 'The method is not known.',
  },
  'store-unavailable': {
    status: 503,
    when: 'The store cannot be reached. Nothing was done; try again.',
    sentence: (detail) => detail || 'The store is not available; nothing was done, try again.',
    header: retryAfter,
  },
  'outcome-unknown': {
    status: 503,
    when: 'The store failed while it wrote. Whether the write was done is not known; a retry tells.',
    sentence: () => 'The store failed while writing; whether it was done is not known, try again.',
    header: retryAfter,
  },
}
