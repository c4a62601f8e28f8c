// Opens a store, whichever kind it is: the one file that knows both.
import type { Clock } from '../clock.ts'
import { Failure } from '../domain/failure.ts'
import type { Store } from '../domain/store.ts'
import { Refused } from '../refused.ts'
import type { StoreLocation, StoreOptions } from './location.ts'
import { postgresRefusal } from './postgres/refusal.ts'
import { migratePostgresStore, openPostgresStore } from './postgres/store.ts'
import { sqliteRefusal } from './sqlite/refusal.ts'
import { openSqliteStore } from './sqlite/store.ts'
import { verifySqliteStore } from './sqlite/verify.ts'
import { type Summary, type SummaryOptions, summaryOf } from './summary.ts'

export { backupSqliteStore, restoreSqliteStore } from './sqlite/backup.ts'

/** Rejects with Refused if the store cannot be used. */
export function openStore(location: StoreLocation, options: StoreOptions): Promise<Store> {
  return location.scheme === 'sqlite'
    ? openSqliteStore(location, options)
    : openPostgresStore(location, options)
}

/**
 * Reads all of a store and changes nothing. An embedded one is read as it is at one moment. Rejects
 * with Refused if it is damaged.
 */
export async function verifyStore(
  location: StoreLocation,
  options: SummaryOptions & Pick<StoreOptions, 'clock' | 'randomBytes' | 'note' | 'warn'>,
): Promise<Summary> {
  if (location.scheme === 'sqlite') return await verifySqliteStore(location, options)
  const store = await openPostgresStore(location, {
    ...options,
    use: 'existing',
    patience: 'of a command',
  })
  try {
    return await summaryOf(forOperator(store, location).kept, options)
  } finally {
    await store.close()
  }
}

/**
 * Brings a store to this version's schema and resolves to the statements that were needed; with
 * `onlyLook` it carries out none. Undefined for an embedded store, which is brought there whenever
 * it is opened. Rejects with Refused.
 */
export async function migrateStore(
  location: StoreLocation,
  onlyLook: boolean,
  clock: Clock,
): Promise<readonly string[] | undefined> {
  return location.scheme === 'postgres'
    ? await migratePostgresStore(location, onlyLook, clock)
    : undefined
}

/**
 * The store as a command uses it: a Failure becomes Refused, with a sentence for the operator that
 * names the store and the cause.
 */
export function forOperator(store: Store, location: StoreLocation): Store {
  function refuse(error: unknown): never {
    if (!(error instanceof Failure)) throw error
    if (error.cause === undefined) throw new Refused(error.message, { cause: error })
    const refused =
      location.scheme === 'sqlite'
        ? sqliteRefusal(location, error.cause)
        : postgresRefusal(location, error.cause)
    if (error.refusal === 'outcome-unknown')
      refused.message += ' Whether the write was done is not known.'
    throw refused
  }

  /** Every function of an object, and of the objects in it, with its errors refused. */
  function refusing<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (_, name) => {
        const member: unknown = Reflect.get(part, name)
        if (typeof member === 'object' && member !== null) return refusing(member)
        if (typeof member !== 'function') return member
        return (...args: readonly unknown[]) => {
          try {
            const answer: unknown = member.apply(part, args)
            return answer instanceof Promise ? answer.catch(refuse) : answer
          } catch (error) {
            return refuse(error)
          }
        }
      },
    })
  }

  return refusing(store)
}
