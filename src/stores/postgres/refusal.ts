// Why a database cannot be used, in one sentence for the operator. It names hosts, users and
// databases, never a password.
import { DatabaseError } from 'pg'
import { storeRefused, Unusable } from '../failures.ts'
import { isWithoutEncryption } from './cluster/connection.ts'
import { Fault } from './cluster/faults.ts'
import { describePostgres, type PostgresLocation } from './location.ts'

/** The sentence for what kept a database from being used: a Fault, or an error of the driver. */
export function postgresRefusal(location: PostgresLocation, error: unknown): Error {
  const cause = error instanceof Fault ? (error.cause ?? error) : error
  // The network has such errors too, if a name stands for several addresses.
  const isOfHosts =
    cause instanceof AggregateError && cause.errors.every((each) => each instanceof Fault)
  const reason = isOfHosts
    ? (cause.errors as Fault[])
        .map(({ message, cause }) => `${message} ${reasonOf(cause, location)}`)
        .join('; ')
    : cause instanceof Unusable
      ? cause.message
      : `it ${reasonOf(cause, location)}`
  return storeRefused(describePostgres(location), reason, error)
}

function reasonOf(error: unknown, { user, database }: PostgresLocation): string {
  if (error instanceof Unusable) return `will not do: ${error.message}`
  /** By SQLSTATE, or by the code of the error if no server answered. */
  const reasons: Readonly<Record<string, string>> = {
    '28P01': `refuses the user "${user}" or the password; check both, PGPASSWORD and the password file`,
    '28000': `refuses the user "${user}" from here; check its pg_hba.conf, and sslmode`,
    '3D000': `has no database "${database}"; create it, in UTF8`,
    '42501': `refuses the user "${user}" a right that this needs; let it own the database, or grant it what docs/scale-out.md names`,
    '42P05':
      'mixes up prepared statements, as a pooler does; name the database itself, or give PgBouncer (1.21 or newer) max_prepared_statements',
    '53300': 'has no connection left; lower pool_max_conns, or raise its max_connections',
    '57P03': 'is starting up or shutting down; try again',
    ECONNREFUSED: 'refuses connections; check that the database runs there',
    ECONNRESET: 'broke the connection off',
    EHOSTUNREACH: 'cannot be reached',
    ENETUNREACH: 'cannot be reached',
    ENOTFOUND: 'is a name that is not known',
    EAI_AGAIN: 'is a name that cannot be looked up now',
    ETIMEDOUT: 'does not answer',
    CERT_HAS_EXPIRED: 'shows a certificate that has expired',
    ERR_TLS_CERT_ALTNAME_INVALID:
      'shows a certificate for another name; connect by that name, or use sslmode=verify-ca',
  }
  const { code = '', message } = error as { code?: string; message: string }
  const known = reasons[code]
  if (known !== undefined) return known
  if (error instanceof DatabaseError) return `says: ${message}`
  if (/timeout|timed out/i.test(message)) return 'does not answer'
  if (isWithoutEncryption(error))
    return 'offers no TLS; use sslmode=disable where the network is trusted'
  if (/certificate|self.signed|issuer/i.test(`${code} ${message}`))
    return `shows a certificate that is not trusted (${message}); name its issuer with sslrootcert`
  if (/SASL|password/i.test(message))
    return `wants a password for the user "${user}"; put it in PGPASSWORD or a password file`
  return `cannot be reached (${message})`
}
