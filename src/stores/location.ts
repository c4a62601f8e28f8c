// Where a store is, whichever kind it is: read from a URL, and shown without secrets. And what it
// is opened with.
import type { Clock } from '../clock.ts'
import { Mistake } from '../refused.ts'
import {
  describePostgres,
  type PostgresLocation,
  readPostgresLocation,
} from './postgres/location.ts'
import { readSqliteLocation, type SqliteLocation } from './sqlite/location.ts'

export type { SqliteLocation } from './sqlite/location.ts'
export type StoreLocation = SqliteLocation | PostgresLocation

/** `environment` may complete a URL, as PGPASSWORD does. */
export function readStoreLocation(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): StoreLocation | Mistake {
  if (/^postgres(?:ql)?:\/\//.test(text)) return readPostgresLocation(text, environment)
  if (/^sqlite:./s.test(text)) return readSqliteLocation(text.slice('sqlite:'.length))
  const guess = text.includes(':') || text === '' ? '' : `; try sqlite:${text}`
  return new Mistake(`sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE${guess}`)
}

/** A store as it may be shown: without its password. */
export function describeStore(location: StoreLocation): string {
  return location.scheme === 'sqlite' ? `sqlite:${location.path}` : describePostgres(location)
}

/** The URL of a store, to be given to another command: all of it but its password. */
export function storeUrl(location: StoreLocation): string {
  const query = location.scheme === 'postgres' && location.query !== '' ? `?${location.query}` : ''
  return describeStore(location) + query
}

/** A sentence as it may be shown: a URL in what it quotes may hold a password. */
export function withoutPasswords(sentence: string): string {
  return sentence.replace(/"((?:\\.|[^"\\])*?:\/\/)(?:\\.|[^"\\])*"/g, '"$1[redacted]"')
}

export type Committed = (writes: number, tookMs: number) => void

export interface StoreOptions {
  /** Whether a store that is not there yet may be made. */
  readonly use: 'create' | 'existing'
  /**
   * A command that concerns every plant or token may work for an hour; a request, and what is like
   * one, must be done in seconds.
   */
  readonly patience: 'of a request' | 'of a command'
  readonly clock: Clock
  readonly randomBytes: (count: number) => Uint8Array
  /** Told of what the operator should know. */
  readonly note: (message: string) => void
  /** Told of what the operator should look at. */
  readonly warn: (message: string, cause?: unknown) => void
  /** Told of each commit: how many writes shared it, and how long it took. */
  readonly committed?: Committed
  /** What to do if the store is not there and may not be made, as the end of a sentence. */
  readonly ifMissing?: string
}
