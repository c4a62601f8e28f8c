// Where a store is: from the URL of a setting, and PostgreSQL's own environment variables, to all
// that is needed to reach it, or to what is wrong with them.
import { readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

export type StoreLocation = SqliteLocation | PostgresLocation

export interface SqliteLocation {
  readonly scheme: 'sqlite'
  /**
   * Absolute, so that every sentence and every command to paste names the same file in any folder.
   */
  readonly path: string
}

/** The terms are libpq's: https://www.postgresql.org/docs/current/libpq-connect.html */
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

/** What a text must be instead, as the end of the sentence "--flag must be …". */
export class Mistake {
  readonly mustBe: string

  constructor(mustBe: string) {
    this.mustBe = mustBe
  }
}

/** A sentence as it may be shown: a URL in what it quotes may hold a password. */
export function withoutPasswords(sentence: string): string {
  return sentence.replace(/"((?:\\.|[^"\\])*?:\/\/)(?:\\.|[^"\\])*"/g, '"$1[redacted]"')
}

type Environment = Readonly<Record<string, string | undefined>>

const knownForms = 'sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE'

export function readStoreLocation(text: string, environment: Environment): StoreLocation | Mistake {
  if (/^postgres(?:ql)?:\/\//.test(text)) return readPostgres(text, environment)
  const path = text.startsWith('sqlite:') ? text.slice('sqlite:'.length) : ''
  if (path.endsWith('/')) return new Mistake(`sqlite:FILE, such as sqlite:${path}plants.db`)
  const plainPath = path.replace(/^(?:\/\/|file:)/, '').replace(/\?.*$/s, '')
  if (plainPath !== path)
    return new Mistake(
      `sqlite:FILE without slashes before it, "file:" or a question mark; try sqlite:${plainPath}`,
    )
  if (path.startsWith('~'))
    return new Mistake(
      'sqlite:FILE with the name of your folder written out: "~" has no meaning here',
    )
  if (path !== '' && path !== ':memory:') return { scheme: 'sqlite', path: resolve(path) }
  const mustBe =
    path === ''
      ? knownForms
      : 'the sqlite:FILE of a real file, since a store in memory would lose what was acknowledged'
  return new Mistake(`${mustBe}${text.includes(':') || text === '' ? '' : `; try sqlite:${text}`}`)
}

/** A store as it may be shown: without its password. */
export function describeStore(location: StoreLocation): string {
  if (location.scheme === 'sqlite') return `sqlite:${location.path}`
  const { user, hosts, database } = location
  return `postgres://${encodeURIComponent(user)}@${hosts.map(describeHost).join(',')}/${encodeURIComponent(database)}`
}

/** The URL of a store, to be given to another command: all of it but its password. */
export function storeUrl(location: StoreLocation): string {
  const query = location.scheme === 'postgres' && location.query !== '' ? `?${location.query}` : ''
  return describeStore(location) + query
}

export function describeHost({ host, port }: Pick<PostgresHost, 'host' | 'port'>): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** A URL with several hosts is none for the standard parser, so it is taken apart here. */
const urlForm =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?(?<hosts>[^/?#]*)(?:\/(?<database>[^?#]*))?(?:\?(?<query>[^#]*))?$/

const parameterNames = ['sslmode', 'sslrootcert', 'target_session_attrs', 'pool_max_conns'] as const
type Parameters = Partial<Record<(typeof parameterNames)[number], string>>

function readPostgres(text: string, environment: Environment): PostgresLocation | Mistake {
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

function readParameters(query: string, environment: Environment, wrong: string[]): Parameters {
  const parameters: Parameters = {}
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
 * A mode that would verify nothing, or anybody's certificate, is refused where something was to be
 * verified.
 */
function readTrust(
  { sslmode, sslrootcert }: Parameters,
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

type PasswordOf = (of: {
  host: string
  port: number
  database: string
  user: string
}) => string | undefined

/** The password file: https://www.postgresql.org/docs/current/libpq-pgpass.html */
function readPasswordFile(environment: Environment, wrong: string[]): PasswordOf {
  const named = environment['PGPASSFILE']
  const path = named || join(environment['HOME'] ?? '', '.pgpass')
  try {
    const { mode } = statSync(path)
    if ((mode & 0o077) === 0) return passwordOf(readFileSync(path, 'utf8'))
    wrong.push(`whose password file ${path} is closed to others (chmod 0600)`)
  } catch {
    if (named) wrong.push(`whose password file ${path} (PGPASSFILE) can be read`)
  }
  return () => undefined
}

function passwordOf(text: string): PasswordOf {
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
