// How a store says that it failed: in the same words, whichever store it is.
import { Failure } from '../domain/failure.ts'
import { Refused } from '../refused.ts'

/** Why a store cannot be used: `message` ends the sentence "The store … cannot be used: …". */
export class Unusable extends Error {}

export function storeRefused(store: string, reason: string, cause: unknown): Refused {
  return new Refused(`The store ${store} cannot be used: ${reason}.`, { cause })
}

/** Whether an error can only come from a mistake in this program: then it keeps its stack. */
export function isDefect(error: unknown): boolean {
  const kinds = [TypeError, RangeError, ReferenceError, SyntaxError]
  return kinds.some((kind) => error instanceof kind)
}

export function nothingDone(cause: unknown): Failure {
  return new Failure('store-unavailable', undefined, { cause })
}

export function writeUncertain(cause: unknown): Failure {
  return new Failure('outcome-unknown', undefined, { cause })
}
