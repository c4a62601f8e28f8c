// The first words on each connection: they find out whether what the service promises can be kept
// on this host, and set the server's own deadline.
import type { ClientBase } from 'pg'
import type { PostgresLocation } from '../../storeLocation.ts'
import { statements } from './statements.ts'

/** This host answered but cannot be used: `message` is the end of a sentence about it. */
export class HostRefused extends Error {}

interface Greeting {
  readonly standby: boolean
  readonly read_only: string | null
  readonly encoding: string | null
  readonly fsync: string | null
  readonly synchronous_commit: string | null
  readonly now_seconds: number
}

/**
 * Resolves to how far the server's clock is ahead of ours (of `performance.now`), in milliseconds;
 * rejects with HostRefused. Settings that other engines of the family do not have come as null.
 */
export async function greet(
  client: ClientBase,
  expected: { readonly statementMs: number } & Pick<PostgresLocation, 'writableHosts'>,
): Promise<number> {
  const { rows } = await client.query<Greeting>(statements.greeting.text, [
    String(expected.statementMs),
  ])
  const answeredMs = performance.now()
  const [greeting] = rows
  if (greeting === undefined) throw new HostRefused('it does not answer as a database does')
  if (expected.writableHosts === 'primary') {
    if (greeting.standby) throw new HostRefused('it is a standby, which takes no writes')
    if (greeting.read_only === 'on')
      throw new HostRefused('it takes no writes (default_transaction_read_only is on)')
  }
  const { encoding, fsync, synchronous_commit: synchronousCommit } = greeting
  if (encoding !== null && !/^utf-?8$/i.test(encoding))
    throw new HostRefused(`the database is in ${encoding}; create it in UTF8`)
  if (fsync === 'off')
    throw new HostRefused(
      'it does not sync its disk, and would lose writes at a power cut; set fsync = on',
    )
  if (synchronousCommit === 'off' || synchronousCommit === 'local')
    throw new HostRefused(
      `it acknowledges writes early (synchronous_commit = ${synchronousCommit}); set synchronous_commit = on`,
    )
  return greeting.now_seconds * 1000 - answeredMs
}
