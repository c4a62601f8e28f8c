// Every setting of the command line in one table: its flag, its environment variable, its default
// and how it is read. Reading gives all values, or every problem at once.

import { BlockList, isIP, isIPv6 } from 'node:net'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { nameLengthMax, type Scope, scopes, withoutTokens } from '../domain/token.ts'
import { Mistake } from '../refused.ts'
import { readStoreLocation, type StoreLocation } from '../stores/location.ts'
import { nearest } from './nearest.ts'
import { type PlantFormat, plantFormats } from './plantFormats.ts'

interface Setting<Value> {
  /** The word for the value in the help. Absent for a switch, which takes no value. */
  readonly placeholder?: string
  readonly help: string
  /** The environment variable that is read if the flag is not given. */
  readonly variable?: string
  readonly read: (text: string, environment: Environment) => Value | Mistake
  /** The value if neither flag nor variable is given. */
  readonly otherwise: () => Value
}

type Environment = Readonly<Record<string, string | undefined>>

export const settings = {
  host: setting({
    placeholder: 'ADDRESS',
    help: 'address to listen on (default 127.0.0.1)',
    variable: 'PLANTS_HOST',
    read: (text) =>
      /^[0-9A-Za-z._-]+$/.test(text) || isIPv6(text)
        ? text
        : new Mistake(
            'an IP address or a host name alone, without brackets, scheme or port (see --port)',
          ),
    otherwise: () => '127.0.0.1',
  }),
  port: setting({
    placeholder: 'NUMBER',
    help: 'port to listen on; 0 takes a free one (default 8080)',
    variable: 'PLANTS_PORT',
    read: readPort,
    otherwise: () => 8080,
  }),
  'metrics-port': setting<number | undefined>({
    placeholder: 'NUMBER',
    help: 'port for metrics in the format of Prometheus, at /metrics on 127.0.0.1 (default: none)',
    variable: 'PLANTS_METRICS_PORT',
    read: readPort,
    otherwise: () => undefined,
  }),
  store: setting<StoreLocation>({
    placeholder: 'URL',
    help: 'where the data is: sqlite:FILE or postgres://USER@HOST/DATABASE (default sqlite:plants.db)',
    variable: 'PLANTS_STORE',
    read: readStoreLocation,
    otherwise: () => ({ scheme: 'sqlite', path: resolve('plants.db') }),
  }),
  'trust-proxy': setting<BlockList | undefined>({
    placeholder: 'LIST',
    help: 'proxies whose X-Forwarded-For names the client: addresses, ranges such as 10.0.0.0/8, or loopback, separated by commas (default: none)',
    variable: 'PLANTS_TRUST_PROXY',
    read: readAddresses,
    otherwise: () => undefined,
  }),
  'public-url': setting({
    placeholder: 'URL',
    help: 'where clients find the service behind a proxy, such as https://example.org/garden; links begin with it (default: links begin with /)',
    variable: 'PLANTS_PUBLIC_URL',
    read: (text) => {
      const url = /^https?:\/\/[^\s?#@]+$/.test(text) ? URL.parse(text) : null
      return url === null
        ? new Mistake('a URL such as https://example.org/garden, without user, query or fragment')
        : url.href.replace(/\/+$/, '')
    },
    otherwise: () => '',
  }),
  'first-token': setting({
    help: 'if the store holds no token at all, issue one and print it with requests to paste',
    variable: 'PLANTS_FIRST_TOKEN',
    read: readSwitch,
    otherwise: () => false,
  }),
  account: setting<string | undefined>({
    placeholder: 'NAME',
    help: 'the account: the owner of plants and tokens',
    read: (text) =>
      /^\s|\s$/.test(text)
        ? new Mistake('without white space at either end')
        : readText(text, 1, nameLengthMax),
    otherwise: () => undefined,
  }),
  format: setting<PlantFormat | undefined>({
    placeholder: 'FORMAT',
    help: 'ndjson or csv (default: ndjson, but csv for a FILE that ends in .csv)',
    read: (text) => plantFormats.find((format) => format === text) ?? new Mistake('ndjson or csv'),
    otherwise: () => undefined,
  }),
  'dry-run': setting({
    help: 'say what would be done, and change nothing',
    read: readSwitch,
    otherwise: () => false,
  }),
  yes: setting({
    help: 'do not ask',
    read: readSwitch,
    otherwise: () => false,
  }),
  label: setting({
    placeholder: 'TEXT',
    help: 'what the token is for, to know it again in the list',
    read: (text) => readText(text, 0, nameLengthMax),
    otherwise: () => '',
  }),
  scopes: setting<readonly Scope[]>({
    placeholder: 'LIST',
    help: `what the token may do (default ${scopes.join(',')})`,
    read: (text) => {
      const named = new Set(text.split(',').map((part) => part.trim()))
      const known = scopes.filter((scope) => named.has(scope))
      return known.length === named.size
        ? known
        : new Mistake(`one or more of ${scopes.join(', ')}, separated by commas`)
    },
    otherwise: () => scopes,
  }),
  expires: setting<number | null>({
    placeholder: 'TIME',
    help: 'how long the token lasts, such as 90d, 12h, 30m or 45s (default: until it is revoked)',
    read: (text) => {
      const [, amount, unit = ''] = /^([1-9][0-9]{0,9})([smhd])$/.exec(text) ?? []
      const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit]
      const lifetimeMs = Number(amount) * (unitMs ?? Number.NaN)
      return lifetimeMs <= 100 * 365 * 86_400_000
        ? lifetimeMs
        : new Mistake('a time such as 90d, 12h, 30m or 45s, and no more than 100 years')
    },
    otherwise: () => null,
  }),
  from: setting<StoreLocation | undefined>({
    placeholder: 'URL',
    help: 'the store to copy from; nothing may write to it meanwhile',
    read: readStoreLocation,
    otherwise: () => undefined,
  }),
  to: setting<StoreLocation | undefined>({
    placeholder: 'URL',
    help: 'the store to copy to; a database must have been prepared by "plants migrate"',
    read: readStoreLocation,
    otherwise: () => undefined,
  }),
  print: setting({
    help: 'print the SQL that is needed and change nothing',
    read: readSwitch,
    otherwise: () => false,
  }),
  active: setting({
    help: 'only tokens that work: neither revoked nor expired',
    read: readSwitch,
    otherwise: () => false,
  }),
  json: setting({
    help: 'print JSON for programs instead of a table',
    read: readSwitch,
    otherwise: () => false,
  }),
} as const

export type SettingName = keyof typeof settings

/** Every problem with a command line, in one sentence each. */
export class UsageProblems extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

/** The values of these settings, by name. Required ones are never undefined. */
export interface Parsed<Names extends SettingName, Required extends Names = never> {
  readonly values: {
    readonly [Name in Names]: (typeof settings)[Name] extends Setting<infer Value>
      ? Exclude<Value, Name extends Required ? undefined : never>
      : never
  }
  readonly positionals: readonly string[]
}

/**
 * Reads the settings of a command from its arguments and the environment; arguments win. Throws
 * UsageProblems.
 */
export function readSettings<Names extends SettingName, Required extends Names = never>(
  names: readonly Names[],
  positionalNames: readonly string[],
  args: readonly string[],
  environment: Environment,
  required: readonly Required[] = [],
): Parsed<Names, Required> {
  const { flags, positionals, problems } = readFlags(names, args)
  const mustBeGiven: readonly Names[] = required
  const entries = names.map((name) => {
    const { variable, read, otherwise } = settings[name] as Setting<unknown>
    const flagged = flags.get(name)
    const text = flagged ?? (variable === undefined ? undefined : environment[variable])
    if (text === undefined && mustBeGiven.includes(name)) problems.push(`--${name} is missing.`)
    if (text === undefined) return [name, otherwise()]
    const value = read(text, environment)
    const source = flagged === undefined ? variable : `--${name}`
    if (value instanceof Mistake)
      problems.push(`${source} must be ${value.mustBe}, not ${quoted(text)}.`)
    return [name, value]
  })
  const variables = Object.values(settings).flatMap(({ variable }) => variable ?? [])
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('PLANTS_') || variables.includes(name)) continue
    const meant = nearest(name, variables)
    if (meant !== undefined) problems.push(`${name} is not known; did you mean ${meant}?`)
  }
  const kept = keptByNpm(names, positionals, environment)
  problems.push(...kept)
  // npm hands on the value of a flag that it has kept, as one argument too many.
  if (kept.length === 0) {
    for (const name of positionalNames.slice(positionals.length))
      problems.push(`${name} is missing.`)
    for (const text of positionals.slice(positionalNames.length))
      problems.push(`${quoted(text)} is one argument too many.`)
  }
  if (problems.length > 0) throw new UsageProblems(problems)
  return { values: Object.fromEntries(entries), positionals }
}

/** Typed text as a message repeats it: quoted, shortened and without tokens. */
export function quoted(text: string): string {
  return JSON.stringify(shortened(withoutTokens(text)))
}

function readFlags(
  names: readonly SettingName[],
  args: readonly string[],
): { flags: Map<string, string>; positionals: string[]; problems: string[] } {
  const options = Object.fromEntries(
    names.map((name) => {
      const isSwitch = settings[name].placeholder === undefined
      return [name, { type: isSwitch ? 'boolean' : 'string' }] as const
    }),
  )
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const flags = new Map<string, string>()
  const positionals: string[] = []
  const problems: string[] = []
  const unknown = new Set<number>()
  for (const token of tokens) {
    // What follows an unknown flag may be its value.
    if (token.kind === 'positional' && !unknown.has(token.index - 1)) positionals.push(token.value)
    if (token.kind !== 'option' || unknown.has(token.index)) continue
    const name = names.find((known) => known === token.name)
    if (name === undefined) {
      unknown.add(token.index)
      problems.push(unknownFlag(args[token.index] ?? token.rawName, names))
    } else if (flags.has(name)) problems.push(`--${name} is given more than once.`)
    else if (options[name]?.type === 'boolean') flags.set(name, token.value ?? 'true')
    else if (token.value === undefined || (!token.inlineValue && token.value.startsWith('--')))
      problems.push(`--${name} needs a value.`)
    else flags.set(name, token.value)
  }
  return { flags, positionals, problems }
}

/**
 * The parser reads a flag with one dash, such as -port, as a row of single letters. The message
 * names the flag as it was typed.
 */
function unknownFlag(typed: string, names: readonly SettingName[]): string {
  const [flag] = /^-+[A-Za-z][\w-]*/.exec(withoutTokens(typed)) ?? ['-']
  const meant = nearest(
    flag.replace(/^-+/, '--'),
    names.map((name) => `--${name}`),
  )
  return `${shortened(flag)} is not known to this command${meant === undefined ? '.' : `; did you mean ${meant}?`}`
}

/**
 * Finds flags that were typed before the "--" of npm start. npm takes them for its own and passes
 * them on only in variables.
 */
function keptByNpm(
  names: readonly SettingName[],
  positionals: readonly string[],
  environment: Environment,
): string[] {
  if (environment['npm_lifecycle_event'] !== 'start') return []
  const kept = names.flatMap((name) => {
    const value = environment[`npm_config_${name.replaceAll('-', '_')}`]
    return value === undefined ? [] : [{ name, value }]
  })
  return kept.map(({ name, value }) => {
    const { placeholder } = settings[name]
    const typed = value !== 'true' ? value : kept.length === 1 ? (positionals[0] ?? '') : ''
    let shown = value === 'true' ? '' : '=false'
    if (placeholder !== undefined) {
      const isPlain = /^[\w.:/-]{1,100}$/.test(typed) && !typed.includes('://')
      shown = ` ${isPlain ? typed : placeholder}`
    }
    return `npm kept --${name} for itself; write: npm start -- --${name}${shown}`
  })
}

function setting<Value>(declared: Setting<Value>): Setting<Value> {
  return declared
}

function readPort(text: string): number | Mistake {
  return /^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535
    ? Number(text)
    : new Mistake('a number from 0 to 65535')
}

function readAddresses(text: string): BlockList | Mistake {
  const addresses = new BlockList()
  const loopback = '127.0.0.0/8,::1'
  for (const part of text.replace(/(?<=^|,)\s*loopback\s*(?=,|$)/g, loopback).split(',')) {
    const [, address = '', bits] = /^([^/%]+)(?:\/([0-9]{1,3}))?$/.exec(part.trim()) ?? []
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    const bitsMax = family === 'ipv6' ? 128 : 32
    if (isIP(address) === 0 || Number(bits ?? bitsMax) > bitsMax)
      return new Mistake(
        'IP addresses, ranges such as 10.0.0.0/8, or loopback, separated by commas',
      )
    addresses.addSubnet(address, Number(bits ?? bitsMax), family)
  }
  return addresses
}

function readSwitch(text: string): boolean | Mistake {
  if (/^(?:true|1)$/.test(text)) return true
  return /^(?:false|0|)$/.test(text) ? false : new Mistake('true or false')
}

function readText(text: string, min: number, max: number): string | Mistake {
  const length = [...text].length
  const fits = length >= min && length <= max && text.isWellFormed()
  if (!fits) return new Mistake(`${min} to ${max} characters of text`)
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? new Mistake('without control characters') : text
}

/** At most a hundred characters, of which each may be two code units. */
function shortened(text: string): string {
  return text.length > 100 ? `${[...text.slice(0, 200)].slice(0, 100).join('')}…` : text
}
