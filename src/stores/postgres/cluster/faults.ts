// What a failed statement means: whether it may have been done, whether to try again, and what it
// says of its connection. Errors of the server are told apart by SQLSTATE alone
// (https://www.postgresql.org/docs/current/errcodes-appendix.html), never by a message or a name.
import { DatabaseError } from 'pg'

export interface Fault {
  /** Whether the statement may have taken effect. */
  readonly done: 'no' | 'unknown'
  readonly retry: boolean
  /** `spent`: this one must not be used again; `lost`: nor can those beside it be relied on. */
  readonly connection: 'good' | 'spent' | 'lost'
}

/** No connection could be had, so nothing was sent. */
export class NotConnected extends Error {
  constructor(cause: unknown) {
    super('no connection to the database', { cause })
    this.name = 'NotConnected'
  }
}

/** The answer did not come in time. */
export class NoAnswer extends Error {}

/** The commit returned, but with a warning: it did not wait for the standbys. */
export class CommitWarned extends Error {}

const undone: Fault = { done: 'no', retry: false, connection: 'good' }
const undoneRetry: Fault = { done: 'no', retry: true, connection: 'good' }
const undoneSpent: Fault = { done: 'no', retry: true, connection: 'spent' }
const undoneLost: Fault = { done: 'no', retry: true, connection: 'lost' }
const unknownRetry: Fault = { done: 'unknown', retry: true, connection: 'good' }
const unknownLost: Fault = { done: 'unknown', retry: true, connection: 'lost' }

/** An error of the server ends the statement undone, except where this table says otherwise. */
const bySqlState: Readonly<Record<string, Fault>> = {
  // serialization_failure, deadlock_detected
  '40001': undoneRetry,
  '40P01': undoneRetry,
  // statement_completion_unknown
  '40003': unknownRetry,
  // division_by_zero: the statement came too late and ended itself (statements.ts).
  '22012': undoneSpent,
  // feature_not_supported: a prepared statement outlived a change of its tables.
  '0A000': undoneSpent,
  // read_only_sql_transaction: this node takes no writes any more.
  '25006': undoneLost,
  // too_many_connections, cannot_connect_now
  '53300': undoneLost,
  '57P03': undoneLost,
  // admin_shutdown, crash_shutdown, database_dropped, idle_session_timeout: the server ended the
  // connection.
  '57P01': unknownLost,
  '57P02': unknownLost,
  '57P04': unknownLost,
  '57P05': unknownLost,
  // connection_failure, said by the server: it does not reach the node that holds this account's
  // rows.
  '08006': unknownRetry,
}

export function faultOf(error: unknown): Fault {
  if (error instanceof NotConnected) return undoneRetry
  if (error instanceof CommitWarned) return unknownRetry
  // What is no error of the server is the end of the connection, or of our patience with it.
  if (!(error instanceof DatabaseError)) return unknownLost
  return bySqlState[error.code ?? ''] ?? (error.code?.startsWith('08') ? unknownRetry : undone)
}
