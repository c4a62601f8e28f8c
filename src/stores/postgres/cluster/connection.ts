// One connection to a host: how it is encrypted, what its first words find out, and how it is cut
// off.
import type { ConnectionOptions } from 'node:tls'
import { type ClientBase, types } from 'pg'
import { Unusable } from '../../failures.ts'
import type { PostgresLocation } from '../location.ts'
import { statements } from '../statements.ts'

/**
 * TLS as libpq's modes have it (https://www.postgresql.org/docs/current/libpq-ssl.html): what the
 * driver needs to know, or false for none.
 */
export function encryption({
  sslMode,
  rootCertificates,
}: Pick<PostgresLocation, 'sslMode' | 'rootCertificates'>): false | ConnectionOptions {
  const trusted = rootCertificates === undefined ? {} : { ca: rootCertificates }
  switch (sslMode) {
    case 'disable':
      return false
    case 'prefer':
      return { rejectUnauthorized: false }
    case 'require':
      // Given certificates to trust, libpq verifies here too.
      return rootCertificates === undefined
        ? { rejectUnauthorized: false }
        : { ...trusted, ...anyName }
    case 'verify-ca':
      return { ...trusted, ...anyName }
    case 'verify-full':
      return { ...trusted, rejectUnauthorized: true }
  }
}

/** A certificate counts whatever host it names. */
const anyName: ConnectionOptions = {
  rejectUnauthorized: true,
  checkServerIdentity: () => undefined,
}

/** The driver's words if the server declined TLS. */
export function isWithoutEncryption(error: unknown): boolean {
  return error instanceof Error && error.message === 'The server does not support SSL connections'
}

/**
 * The first words on each connection: they find out whether what the service promises can be kept
 * on this host, and set the server's own deadline. Settings that other engines of the family do not
 * have come as null. Rejects with Unusable.
 */
export async function greet(
  client: ClientBase,
  expected: { readonly statementMs: number } & Pick<PostgresLocation, 'writableHosts'>,
): Promise<void> {
  const { rows } = await client.query<{
    standby: boolean
    read_only: string | null
    encoding: string | null
    fsync: string | null
    synchronous_commit: string | null
  }>({ ...statements.greeting, values: [String(expected.statementMs)] })
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
}

/** Ends the connection at once, with nothing more said or heard. */
export function destroy(client: ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

/** 64-bit integers (int8, whose OID is 20) as bigint: a number would round them. */
export const getTypeParser: typeof types.getTypeParser = (
  type: number,
  format?: 'text' | 'binary',
) => (type === 20 ? BigInt : types.getTypeParser(type, format as 'text'))
