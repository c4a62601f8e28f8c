// TLS to the database, by libpq's modes: https://www.postgresql.org/docs/current/libpq-ssl.html
import type { ConnectionOptions } from 'node:tls'
import type { PostgresLocation } from '../location.ts'

/** What the driver needs to know: false for none. */
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

/** The driver's words where the server declined TLS. */
export function isWithoutEncryption(error: unknown): boolean {
  return error instanceof Error && error.message === 'The server does not support SSL connections'
}
