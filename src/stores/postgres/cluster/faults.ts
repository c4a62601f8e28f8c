// What a statement's failure means: whether it may have been done, whether to try again, and what
// it says of its connection. Errors of the server are told apart by SQLSTATE alone
// (https://www.postgresql.org/docs/current/errcodes-appendix.html), never by a message or a name.
import { DatabaseError } from 'pg'

interface Meaning {
  /** Whether the statement may have taken effect; `before`: by an earlier attempt. */
  readonly done: 'no' | 'unknown' | 'before'
  readonly retry: boolean
  /**
   * `none`: there was none. `spent`: this one must not be used again. `lost`: the host cannot be
   * used any more. `silent`: as `lost`, but the server may still be at work on the statement.
   */
  readonly connection: 'good' | 'none' | 'spent' | 'lost' | 'silent'
}

/** The failure of a statement. Its `cause` is the error of the driver, if there is one. */
export class Fault extends Error implements Meaning {
  readonly done: Meaning['done']
  readonly retry: Meaning['retry']
  readonly connection: Meaning['connection']

  constructor(message: string, { done, retry, connection }: Meaning, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.done = done
    this.retry = retry
    this.connection = connection
  }
}

/** No connection could be had, so nothing was sent. */
export const unsent: Meaning = { done: 'no', retry: true, connection: 'none' }
/** As `unsent`, and the host has no other connection that works. */
export const unreachable: Meaning = { done: 'no', retry: true, connection: 'lost' }
/** The answer did not come in time. */
export const unanswered: Meaning = { done: 'unknown', retry: true, connection: 'silent' }
/** The commit returned, but it did not wait for the standbys. */
export const unconfirmed: Meaning = { done: 'unknown', retry: true, connection: 'good' }

/** An earlier attempt was done, and a failover has lost it since. */
export const lostSince: Meaning = { done: 'no', retry: true, connection: 'good' }

const undone: Meaning = { done: 'no', retry: false, connection: 'good' }
const undoneRetry: Meaning = { done: 'no', retry: true, connection: 'good' }
const undoneSpent: Meaning = { done: 'no', retry: true, connection: 'spent' }
const doneBefore: Meaning = { done: 'before', retry: false, connection: 'good' }
const unknownRetry: Meaning = { done: 'unknown', retry: true, connection: 'good' }
const unknownSpent: Meaning = { done: 'unknown', retry: true, connection: 'spent' }

/** An error of the server ends the statement undone, unless this table says otherwise. */
const bySqlState: Readonly<Record<string, Meaning>> = {
  // serialization_failure, deadlock_detected
  '40001': undoneRetry,
  '40P01': undoneRetry,
  // statement_completion_unknown
  '40003': unknownRetry,
  // unique_violation: the number of a batch is there already (statements.ts).
  '23505': doneBefore,
  // feature_not_supported: a prepared statement outlived a change of its tables.
  '0A000': undoneSpent,
  // duplicate_prepared_statement, invalid_sql_statement_name: the server holds other statements for
  // this connection than we do, as it may behind a pooler.
  '42P05': undoneSpent,
  '26000': undoneSpent,
  // query_canceled, by the deadline: a server that relays statements says so while it still waits
  // for the node that it relayed this one to, and is not ready for another. Other servers are, but
  // this is rare enough to treat all alike.
  '57014': { done: 'no', retry: false, connection: 'spent' },
  // read_only_sql_transaction: this node takes no writes any more.
  '25006': { done: 'no', retry: true, connection: 'lost' },
  // too_many_connections, cannot_connect_now
  '53300': undoneSpent,
  '57P03': undoneSpent,
  // admin_shutdown, crash_shutdown, database_dropped, idle_session_timeout: the server ended this
  // connection. If it ends as a whole, no new one can be had.
  '57P01': unknownSpent,
  '57P02': unknownSpent,
  '57P04': unknownSpent,
  '57P05': unknownSpent,
  // connection_failure, said by the server: it does not reach the node that holds this account's
  // rows.
  '08006': unknownRetry,
}

/**
 * A server that relays statements says this of one that another node may have done, or may still
 * do: query_canceled (by the deadline), internal_error (it has lost that node).
 */
const unknownIfRelayed: readonly string[] = ['57014', 'XX000']

/** The fault that an error of the driver is. `relayed`: by a server that relays statements. */
export function faultOf(error: unknown, relayed = false): Fault {
  if (error instanceof Fault) return error
  // What is no error of the server is the end of the connection.
  let meaning = unknownSpent
  if (error instanceof DatabaseError) {
    const code = error.code ?? ''
    meaning = bySqlState[code] ?? (code.startsWith('08') ? unknownRetry : undone)
    if (relayed && unknownIfRelayed.includes(code)) meaning = unknownRetry
  }
  return new Fault((error as Error).message, meaning, error)
}
