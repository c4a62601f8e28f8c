// Where a PostgreSQL database is: reads its URL, and PostgreSQL's own environment variables, into
// all that is needed to reach it. The terms, the variables and the defaults are libpq's:
// https://www.postgresql.org/docs/current/libpq-connect.html
import { readFileSync } from 'node:fs'
import { Mistake } from '../../refused.ts'
import { readPasswordFile } from './passwordFile.ts'

export interface PostgresLocation {
  readonly scheme: 'postgres'
  readonly hosts: readonly PostgresHost[]
  readonly user: string
  readonly database: string
  /** The parameters of its URL as they were given; none of them is a secret. */
  readonly query: string
  readonly sslMode: SslMode
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
  /** Passwords may differ among hosts, because a password file names them. */
  readonly password: string | undefined
}

const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
type SslMode = (typeof sslModes)[number]

/** A database as it may be shown: without its password. */
export function describePostgres({ user, hosts, database }: PostgresLocation): string {
  return `postgres://${encodeURIComponent(user)}@${hosts.map(describeHost).join(',')}/${encodeURIComponent(database)}`
}

export function describeHost({ host, port }: Pick<PostgresHost, 'host' | 'port'>): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

type Environment = Readonly<Record<string, string | undefined>>

/** A URL with several hosts is none for the standard parser, so it is taken apart here. */
const urlForm =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?(?<hosts>[^/?#]*)(?:\/(?<database>[^?#]*))?(?:\?(?<query>[^#]*))?$/

const parameterNames = ['sslmode', 'sslrootcert', 'target_session_attrs', 'pool_max_conns'] as const
type UrlParameters = Partial<Record<(typeof parameterNames)[number], string>>

/** All that is needed to reach a database, or what is wrong with its URL or with a variable. */
export function readPostgresLocation(
  text: string,
  environment: Environment,
): PostgresLocation | Mistake {
  const parts = urlForm.exec(text)?.groups
  const wrong: string[] = []
  if (parts === undefined)
    return new Mistake('a URL of the form postgres://USER:PASSWORD@HOST/DATABASE')
  const query = parts['query'] ?? ''
  const parameters = readParameters(query, environment, wrong)
  const user = decoded(parts['user'], wrong) || environment['PGUSER'] || ''
  if (user === '') wrong.push('that names a user (USER@HOST, or PGUSER)')
  const database = decoded(parts['database'], wrong) || environment['PGDATABASE'] || user
  const password = decoded(parts['password'], wrong) || environment['PGPASSWORD']
  const hosts = readHosts(
    parts['hosts'] || environment['PGHOST'] || 'localhost',
    environment['PGPORT'],
    wrong,
  )
  const passwords = password === undefined ? readPasswordFile(environment, wrong) : () => password
  const location: PostgresLocation = {
    scheme: 'postgres',
    hosts: hosts.map((host) => ({ ...host, password: passwords({ ...host, database, user }) })),
    user,
    database,
    query,
    ...readTrust(parameters, wrong),
    writableHosts: readWritableHosts(parameters.target_session_attrs, wrong),
    connectionsMax: readConnectionsMax(parameters.pool_max_conns, wrong),
  }
  return wrong.length === 0 ? location : new Mistake(`a URL ${[...new Set(wrong)].join(', and ')}`)
}

function readParameters(query: string, environment: Environment, wrong: string[]): UrlParameters {
  const parameters: UrlParameters = {}
  for (const [name, value] of new URLSearchParams(query)) {
    const known = parameterNames.find((parameter) => parameter === name)
    if (known === undefined)
      wrong.push(
        `without the parameter ${name.slice(0, 30)}; known are ${parameterNames.join(', ')}`,
      )
    else parameters[known] = value
  }
  return {
    ...nonEmpty({
      sslmode: environment['PGSSLMODE'],
      sslrootcert: environment['PGSSLROOTCERT'],
      target_session_attrs: environment['PGTARGETSESSIONATTRS'],
    }),
    ...parameters,
  }
}

function nonEmpty(given: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  )
}

function decoded(part: string | undefined, wrong: string[]): string {
  try {
    return decodeURIComponent(part ?? '')
  } catch {
    wrong.push('whose percent signs each begin an escape such as %40')
    return ''
  }
}

const portDefault = 5432

function readHosts(
  text: string,
  portOtherwise: string | undefined,
  wrong: string[],
): { host: string; port: number }[] {
  const portsOtherwise = portOtherwise?.split(',') ?? []
  return text.split(',').map((each, index) => {
    const [, bracketed, plain, portText] =
      /^(?:\[([^\]]+)\]|([^:@[\]\s]+))(?::([0-9]*))?$/.exec(each) ?? []
    const host = decoded(bracketed ?? plain, wrong)
    // As libpq has it: PGPORT names one port for all, or one for each.
    const port = Number(portText || portsOtherwise[index] || portsOtherwise[0] || portDefault)
    if (host === '')
      wrong.push(
        'whose hosts are HOST or HOST:PORT, separated by commas, after a password without bare @, / or :',
      )
    if (!(Number.isInteger(port) && port >= 1 && port <= 65_535))
      wrong.push('whose ports (or PGPORT) are numbers from 1 to 65535')
    return { host, port }
  })
}

function oneOf<Value extends string>(
  values: readonly Value[],
  name: string,
  text: string,
  wrong: string[],
): Value {
  const value = values.find((each) => each === text)
  if (value === undefined) wrong.push(`whose ${name} is one of ${values.join(', ')}`)
  return value ?? (values[0] as Value)
}

function readWritableHosts(text: string | undefined, wrong: string[]): 'primary' | 'any' {
  const value = oneOf(
    ['primary', 'read-write', 'any'],
    'target_session_attrs',
    text ?? 'primary',
    wrong,
  )
  return value === 'any' ? 'any' : 'primary'
}

const connectionsMaxDefault = 10

function readConnectionsMax(text: string | undefined, wrong: string[]): number {
  if (text === undefined) return connectionsMaxDefault
  if (!/^[1-9][0-9]{0,2}$/.test(text)) wrong.push('whose pool_max_conns is a number from 1 to 999')
  return Number(text)
}

/**
 * Refuses a mode that would verify nothing, or anybody's certificate, if something was to be
 * verified.
 */
function readTrust(
  { sslmode, sslrootcert }: UrlParameters,
  wrong: string[],
): Pick<PostgresLocation, 'sslMode' | 'rootCertificates'> {
  const sslMode = oneOf(sslModes, 'sslmode (or PGSSLMODE)', sslmode ?? 'prefer', wrong)
  if (sslrootcert === 'system' && sslMode !== 'verify-full')
    wrong.push('whose sslmode is verify-full where sslrootcert is system')
  if (sslMode === 'verify-ca' && sslrootcert === undefined)
    wrong.push('whose sslrootcert names a file where sslmode is verify-ca')
  return { sslMode, rootCertificates: readCertificates(sslrootcert, wrong) }
}

function readCertificates(path: string | undefined, wrong: string[]): string | undefined {
  if (path === undefined || path === 'system') return undefined
  try {
    const text = readFileSync(path, 'utf8')
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text
    wrong.push('whose sslrootcert (or PGSSLROOTCERT) is a file of certificates in PEM')
  } catch {
    wrong.push('whose sslrootcert (or PGSSLROOTCERT) is a file that can be read')
  }
  return undefined
}
