// What a failed statement means: whether it may have been done, whether to try again, and whether
// its connection is still good. By SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html),
// never by the text of a message.
import { DatabaseError } from 'pg'

export interface Fault {
  /** Whether the statement may have taken effect. */
  readonly done: 'no' | 'unknown'
  readonly retry: boolean
  /** Whether the connection, and those beside it, can no longer be relied on. */
  readonly connectionLost: boolean
}

/** No connection could be had, so nothing was sent. */
export class NotConnected extends Error {
  constructor(cause: unknown) {
    super('no connection to the database', { cause })
    this.name = 'NotConnected'
  }
}

/** The commit returned, but with a warning: it did not wait for the standbys. */
export class CommitWarned extends Error {}

const undone: Fault = { done: 'no', retry: false, connectionLost: false }
const undoneRetry: Fault = { done: 'no', retry: true, connectionLost: false }
const unknownRetry: Fault = { done: 'unknown', retry: true, connectionLost: false }
const lost: Fault = { done: 'unknown', retry: true, connectionLost: true }

/** An error of the server ends the statement undone, except where this table says otherwise. */
const bySqlState: Readonly<Record<string, Fault>> = {
  // serialization_failure, deadlock_detected
  '40001': undoneRetry,
  '40P01': undoneRetry,
  // statement_completion_unknown
  '40003': unknownRetry,
  // read_only_sql_transaction: this node takes no writes any more.
  '25006': { done: 'no', retry: true, connectionLost: true },
  // feature_not_supported: a prepared statement outlived a change of its tables.
  '0A000': { done: 'no', retry: true, connectionLost: true },
  // too_many_connections, cannot_connect_now
  '53300': { done: 'no', retry: true, connectionLost: true },
  '57P03': { done: 'no', retry: true, connectionLost: true },
  // admin_shutdown, crash_shutdown, idle_session_timeout: the server ended the connection.
  '57P01': lost,
  '57P02': lost,
  '57P05': lost,
  // connection_failure, said by the server: it does not reach the node that holds this account's rows.
  '08006': unknownRetry,
}

export function faultOf(error: unknown): Fault {
  if (error instanceof NotConnected) return { done: 'no', retry: true, connectionLost: false }
  if (error instanceof CommitWarned) return unknownRetry
  // What is no error of the server is the end of the connection, or of our patience with it.
  if (!(error instanceof DatabaseError)) return lost
  return bySqlState[error.code ?? ''] ?? (error.code?.startsWith('08') ? unknownRetry : undone)
}
