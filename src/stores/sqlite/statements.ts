// What the plants and the tokens of an SQLite store share: how they read and write.
import { nothingDone } from '../failures.ts'
import type { Outcome, Write } from './writer/batch.ts'

/** Resolves once a write is durable, to what became of it. */
export type SendWrite = (account: string, ...write: Write) => Promise<Outcome>

/** Writes of the operator and of the store itself are of no account. */
export const noAccount = ''

/**
 * Parameters that the query planner does not look into. Under ORDER BY, LIMIT or a left join it
 * bases its plan on the value of a bare `?`, and compiles the statement again each time one is
 * bound.
 */
export const plannedText = 'cast(? as text)'
export const plannedInteger = 'cast(? as integer)'

/** A read that fails says so in the domain's terms: nothing is lost, and a retry may succeed. */
export function reading<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    throw nothingDone(cause)
  }
}
