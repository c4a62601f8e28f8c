// How a store says that it failed: in the same words, whichever store it is.
import { Failure } from '../domain/failure.ts'
import { Refused } from '../refused.ts'

/** Why a store cannot be used: `message` ends the sentence "The store … cannot be used: …". */
export class Unusable extends Error {}

/**
 * What the operator is told about the cause: Refused with a sentence, or, if the cause is a defect
 * of this program, an error that keeps its stack. The runtime throws defects, and gives them no
 * code. `undone` is what cannot be done with the store.
 */
export function storeRefused(
  store: string,
  reason: string,
  cause: unknown,
  undone = 'used',
): Error {
  const kinds = [TypeError, RangeError, ReferenceError, SyntaxError]
  const isDefect = kinds.some((kind) => cause instanceof kind) && !('code' in (cause as Error))
  return isDefect
    ? new Error(`The work on the store ${store} failed.`, { cause })
    : new Refused(`The store ${store} cannot be ${undone}: ${reason}.`, { cause })
}

export function nothingDone(cause: unknown, sentence?: string): Failure {
  return new Failure('store-unavailable', sentence, { cause })
}

export function writeUncertain(cause: unknown): Failure {
  return new Failure('outcome-unknown', undefined, { cause })
}
