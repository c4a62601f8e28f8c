// The first words on each connection: they find out whether what the service promises can be kept
// on this host, and set the server's own deadline.
import type { ClientBase } from 'pg'
import type { Clock } from '../../../clock.ts'
import { Unusable } from '../../failures.ts'
import type { PostgresLocation } from '../location.ts'
import { statements } from '../statements.ts'

interface Greeting {
  readonly standby: boolean
  readonly read_only: string | null
  readonly encoding: string | null
  readonly fsync: string | null
  readonly synchronous_commit: string | null
  readonly now_seconds: number
}

/**
 * Resolves to how far the server's clock is ahead of ours (of the clock's `monotonicMs`), in milliseconds;
 * rejects with Unusable. Settings that other engines of the family do not have come as null.
 */
export async function greet(
  client: ClientBase,
  expected: { readonly statementMs: number } & Pick<PostgresLocation, 'writableHosts'>,
  clock: Clock,
): Promise<number> {
  const { rows } = await client.query<Greeting>(statements.greeting.text, [
    String(expected.statementMs),
  ])
  const answeredMs = clock.monotonicMs()
  const [greeting] = rows
  if (greeting === undefined) throw new Unusable('it does not answer as a database does')
  if (expected.writableHosts === 'primary') {
    if (greeting.standby) throw new Unusable('it is a standby, which takes no writes')
    if (greeting.read_only === 'on')
      throw new Unusable('it takes no writes (default_transaction_read_only is on)')
  }
  const { encoding, fsync, synchronous_commit: synchronousCommit } = greeting
  if (encoding !== null && !/^utf-?8$/i.test(encoding))
    throw new Unusable(`the database is in ${encoding}; create it in UTF8`)
  if (fsync === 'off')
    throw new Unusable(
      'it does not sync its disk, and would lose writes at a power cut; set fsync = on',
    )
  if (synchronousCommit === 'off' || synchronousCommit === 'local')
    throw new Unusable(
      `it acknowledges writes early (synchronous_commit = ${synchronousCommit}); set synchronous_commit = on`,
    )
  return greeting.now_seconds * 1000 - answeredMs
}
