// How long things may take, from the shortest to the longest. All lie below the minute after which
// a request is cut off.

export interface Deadlines {
  /** How long to wait for a new connection, for its first words, and for one that others use. */
  readonly connectMs: number
  /** How long the server may work on a statement before it gives up. */
  readonly statementMs: number
  /** How long to wait for an answer. By then the server has given up what it has not committed. */
  readonly answerMs: number
  /** How long an operation may wait for its turn, and then begin new attempts. */
  readonly operationMs: number
}

/** For requests. */
export const requestDeadlines: Deadlines = {
  connectMs: 2000,
  statementMs: 2500,
  answerMs: 3500,
  operationMs: 5000,
}

const minuteMs = 60_000

/** For commands, whose statements may concern every plant and token. */
export const commandDeadlines: Deadlines = {
  ...requestDeadlines,
  statementMs: 60 * minuteMs,
  answerMs: 61 * minuteMs,
  operationMs: minuteMs,
}
