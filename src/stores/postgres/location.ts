// Where a PostgreSQL database is: reads its URL, PostgreSQL's own environment variables and its
// password file, into all that is needed to reach it. The terms, the variables and the defaults are
// libpq's: https://www.postgresql.org/docs/current/libpq-connect.html
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Mistake } from '../../refused.ts'

export interface PostgresLocation {
  readonly scheme: 'postgres'
  readonly hosts: readonly PostgresHost[]
  readonly user: string
  readonly database: string
  /** The parameters of its URL as they were given; none of them is a secret. */
  readonly query: string
  readonly sslMode: (typeof sslModes)[number]
  /**
   * Certificates, in PEM, that the server's must descend from; absent: those that the system
   * trusts.
   */
  readonly rootCertificates: string | undefined
  /**
   * Which of the hosts take writes: one of them at a time, which must be found, or each of them.
   */
  readonly writableHosts: 'primary' | 'any'
  /** Most connections of this process to a host that are in use at once. */
  readonly connectionsMax: number
}

export interface PostgresHost {
  readonly host: string
  readonly port: number
  /**
   * Passwords may differ among hosts, because a password file names them. The file is read each
   * time, because the password may have been changed.
   */
  readonly readPassword: () => string | undefined
}

const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

/** A database as it may be shown: without its password. */
export function describePostgres({ user, hosts, database }: PostgresLocation): string {
  return `postgres://${encodeURIComponent(user)}@${hosts.map(describeHost).join(',')}/${encodeURIComponent(database)}`
}

export function describeHost({ host, port }: Pick<PostgresHost, 'host' | 'port'>): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** All that is needed to reach a database, or what is wrong with its URL or with a variable. */
export function readPostgresLocation(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): PostgresLocation | Mistake {
  // A URL with several hosts is none for the standard parser, so it is taken apart here.
  const parts =
    /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?(?<hosts>[^/?#]*)(?:\/(?<database>[^?#]*))?(?:\?(?<query>[^#]*))?$/.exec(
      text,
    )?.groups
  if (parts === undefined)
    return new Mistake('a URL of the form postgres://USER:PASSWORD@HOST/DATABASE')
  const wrong = new Set<string>()

  const parameters: Record<string, string | undefined> = {
    sslmode: environment['PGSSLMODE'] || undefined,
    sslrootcert: environment['PGSSLROOTCERT'] || undefined,
    target_session_attrs: environment['PGTARGETSESSIONATTRS'] || undefined,
    pool_max_conns: undefined,
  }
  const query = parts['query'] ?? ''
  for (const [name, value] of new URLSearchParams(query)) {
    const known = Object.keys(parameters)
    if (known.includes(name)) parameters[name] = value
    else wrong.add(`without the parameter ${name.slice(0, 30)}; known are ${known.join(', ')}`)
  }

  const decoded = (part: string | undefined): string => {
    try {
      return decodeURIComponent(part ?? '')
    } catch {
      wrong.add('whose percent signs each begin an escape such as %40')
      return ''
    }
  }
  const user = decoded(parts['user']) || environment['PGUSER'] || ''
  if (user === '') wrong.add('that names a user (USER@HOST, or PGUSER)')
  const database = decoded(parts['database']) || environment['PGDATABASE'] || user
  const password = decoded(parts['password']) || environment['PGPASSWORD']

  const ports = environment['PGPORT']?.split(',') ?? []
  const hostTexts = (parts['hosts'] || environment['PGHOST'] || 'localhost').split(',')
  const hosts = hostTexts.map((each, index) => {
    const [, bracketed, plain, portText] =
      /^(?:\[([^\]]+)\]|([^:@[\]\s]+))(?::([0-9]*))?$/.exec(each) ?? []
    const host = decoded(bracketed ?? plain)
    // As libpq has it: PGPORT names one port for all, or one for each.
    const port = Number(portText || ports[index] || ports[0] || 5432)
    if (host === '')
      wrong.add(
        'whose hosts are HOST or HOST:PORT, separated by commas, after a password without bare @, / or :',
      )
    if (!(Number.isInteger(port) && port >= 1 && port <= 65_535))
      wrong.add('whose ports (or PGPORT) are numbers from 1 to 65535')
    return { host, port }
  })
  if (password === undefined) readPasswordFile(environment, wrong)

  const oneOf = <Value extends string>(
    name: string,
    value: string,
    values: readonly [Value, ...Value[]],
  ): Value => {
    const known = values.find((each) => each === value)
    if (known === undefined) wrong.add(`whose ${name} is one of ${values.join(', ')}`)
    return known ?? values[0]
  }
  const { sslmode, sslrootcert, target_session_attrs, pool_max_conns } = parameters
  const sslMode = oneOf('sslmode (or PGSSLMODE)', sslmode ?? 'prefer', sslModes)
  // If something is to be verified, a mode that verifies nothing, or anybody's certificate, is
  // refused.
  if (sslrootcert === 'system' && sslMode !== 'verify-full')
    wrong.add('whose sslmode is verify-full where sslrootcert is system')
  if (sslMode === 'verify-ca' && sslrootcert === undefined)
    wrong.add('whose sslrootcert names a file where sslmode is verify-ca')
  let rootCertificates: string | undefined
  if (sslrootcert !== undefined && sslrootcert !== 'system')
    try {
      rootCertificates = readFileSync(sslrootcert, 'utf8')
      if (!rootCertificates.includes('-----BEGIN CERTIFICATE-----'))
        wrong.add('whose sslrootcert (or PGSSLROOTCERT) is a file of certificates in PEM')
    } catch {
      wrong.add('whose sslrootcert (or PGSSLROOTCERT) is a file that can be read')
    }

  const session = oneOf('target_session_attrs', target_session_attrs ?? 'primary', [
    'primary',
    'read-write',
    'any',
  ])
  const connectionsMax = pool_max_conns ?? '10'
  if (!/^[1-9][0-9]{0,2}$/.test(connectionsMax))
    wrong.add('whose pool_max_conns is a number from 1 to 999')
  if (wrong.size > 0) return new Mistake(`a URL ${[...wrong].join(', and ')}`)
  return {
    scheme: 'postgres',
    hosts: hosts.map((host) => ({
      ...host,
      readPassword: () =>
        password ?? readPasswordFile(environment, new Set())({ ...host, database, user }),
    })),
    user,
    database,
    query,
    sslMode,
    rootCertificates,
    writableHosts: session === 'any' ? 'any' : 'primary',
    connectionsMax: Number(connectionsMax),
  }
}

/**
 * The passwords of the file that PGPASSFILE names, or of ~/.pgpass; adds what is wrong with it.
 * https://www.postgresql.org/docs/current/libpq-pgpass.html
 */
function readPasswordFile(
  environment: Readonly<Record<string, string | undefined>>,
  wrong: Set<string>,
): (of: { host: string; port: number; database: string; user: string }) => string | undefined {
  const named = environment['PGPASSFILE']
  const path = named || join(environment['HOME'] ?? '', '.pgpass')
  let text = ''
  try {
    if ((statSync(path).mode & 0o077) === 0) text = readFileSync(path, 'utf8')
    else wrong.add(`whose password file ${path} is closed to others (chmod 0600)`)
  } catch {
    if (named) wrong.add(`whose password file ${path} (PGPASSFILE) can be read`)
  }
  const entries = text
    .split(/\r?\n/)
    .filter((line) => !line.startsWith('#'))
    .map((line) =>
      [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = '']) =>
        field.replace(/\\(.)/g, '$1'),
      ),
    )
  return ({ host, port, database, user }) => {
    const wanted = [host, String(port), database, user]
    return entries.find((fields) =>
      wanted.every((value, index) => fields[index] === '*' || fields[index] === value),
    )?.[4]
  }
}
