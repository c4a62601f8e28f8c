// How a store says that it failed: in the same words, whichever store it is.
import { Failure } from '../domain/failure.ts'
import { Refused } from '../refused.ts'

/** Why a store cannot be used: `message` ends the sentence "The store … cannot be used: …". */
export class Unusable extends Error {}

export function storeRefused(store: string, reason: string, cause: unknown): Refused {
  return new Refused(`The store ${store} cannot be used: ${reason}.`, { cause })
}

/**
 * Whether an error comes from a mistake in this program, and not from the store: the runtime throws
 * it, and gives it no code.
 */
export function isDefect(error: unknown): boolean {
  const kinds = [TypeError, RangeError, ReferenceError, SyntaxError]
  return kinds.some((kind) => error instanceof kind) && !('code' in (error as Error))
}

/** A defect that was met in the work on a store. It is shown with its stack, and names the store. */
export function defectOf(store: string, cause: unknown): Error {
  return new Error(`The work on the store ${store} failed.`, { cause })
}

export function nothingDone(cause: unknown): Failure {
  return new Failure('store-unavailable', undefined, { cause })
}

export function writeUncertain(cause: unknown): Failure {
  return new Failure('outcome-unknown', undefined, { cause })
}
