// How each refusal looks on the wire: the one table of failure status codes and their headers.
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

export interface RefusalForm {
  readonly status: number
  /** For the OpenAPI document: when this happens. */
  readonly when: string
  /** For the OpenAPI document: a message as it is really sent. */
  readonly example: string
  /** The header that this refusal carries; `value` is given the failure's detail. */
  readonly header?: {
    readonly name: string
    readonly value: (detail: string) => string
    readonly example: string
  }
}

const challenge = 'Bearer realm="plants"'
const refusedChallenge = `${challenge}, error="invalid_token", error_description="The bearer token is unknown, malformed, expired or revoked"`
const retryAfter = { name: 'Retry-After', value: () => '1', example: '1' }

export const refusals: Readonly<Record<Refusal, RefusalForm>> = {
  'request-malformed': {
    status: 400,
    when: 'The request line or the Host header is not valid.',
    example: 'Host must name this server exactly once.',
  },
  'input-invalid': {
    status: 400,
    when: 'The body, a parameter or a header is not valid.',
    example: 'name must be a string, not a number.',
  },
  'token-missing': {
    status: 401,
    when: 'There is no bearer token.',
    example: 'A bearer token is needed: send Authorization: Bearer TOKEN.',
    header: { name: 'WWW-Authenticate', value: () => challenge, example: challenge },
  },
  'token-refused': {
    status: 401,
    when: 'The bearer token is unknown, malformed, expired or revoked.',
    example: 'The bearer token is not valid: it is unknown, malformed, expired or revoked.',
    header: { name: 'WWW-Authenticate', value: () => refusedChallenge, example: refusedChallenge },
  },
  'scope-missing': {
    status: 403,
    when: 'The bearer token lacks the scope that this operation needs.',
    example: 'The bearer token lacks the scope plants:write.',
    header: {
      name: 'WWW-Authenticate',
      value: (scope) => `${challenge}, error="insufficient_scope", scope="${scope}"`,
      example: `${challenge}, error="insufficient_scope", scope="plants:write"`,
    },
  },
  'path-unknown': {
    status: 404,
    when: 'Nothing is at this path.',
    example: 'Nothing is at this path; /docs shows what there is.',
  },
  'plant-missing': {
    status: 404,
    when: "No plant of the caller's account has this id.",
    example: 'No plant has this id.',
  },
  'method-not-allowed': {
    status: 405,
    when: 'The path does not take this method.',
    example: 'The path takes these methods only: DELETE, OPTIONS.',
    header: { name: 'Allow', value: (methods) => methods, example: 'DELETE, OPTIONS' },
  },
  'id-taken': {
    status: 409,
    when: "A plant of the caller's account already has this id. It is unchanged.",
    example: 'id is already taken by a plant of this account.',
  },
  'body-too-large': {
    status: 413,
    when: 'The body exceeds the limit. The rest of it is not read and the connection is closed.',
    example: 'The body must not exceed 1048576 bytes.',
    header: { name: 'Connection', value: () => 'close', example: 'close' },
  },
  'media-type-unsupported': {
    status: 415,
    when: 'The body is not declared as JSON in UTF-8.',
    example: 'Content-Type must be application/json, in UTF-8.',
    header: { name: 'Accept', value: () => 'application/json', example: 'application/json' },
  },
  'encoding-unsupported': {
    status: 415,
    when: 'The body is compressed or otherwise encoded.',
    example: 'Content-Encoding must be identity or left out.',
    header: { name: 'Accept-Encoding', value: () => 'identity', example: 'identity' },
  },
  'idempotency-key-reused': {
    status: 422,
    when: 'The idempotency key was first sent with another name or tag for this id.',
    example:
      'Idempotency-Key was first sent with another name or tag for this id; use a new key for a new plant.',
  },
  internal: {
    status: 500,
    when: 'The service failed; its log says why.',
    example: 'The service failed to answer.',
  },
  'method-unknown': {
    status: 501,
    when: 'The method is not known.',
    example: 'The method is not known.',
  },
  'store-unavailable': {
    status: 503,
    when: 'The store cannot be reached. Nothing was done; try again.',
    example: 'The store is not available; nothing was done, try again.',
    header: retryAfter,
  },
  'outcome-unknown': {
    status: 503,
    when: 'The store failed while it wrote. Whether the write was done is not known; a retry tells.',
    example: 'The store failed while writing; whether it was done is not known, try again.',
    header: retryAfter,
  },
}
