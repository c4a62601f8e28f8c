// Three PostgreSQL servers under Patroni, with one etcd, as an operator would run them on three
// machines: synchronous replication, and a leader that is replaced when it falls silent.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import {
  family,
  freePorts,
  host,
  isAlive,
  killFamilies,
  launch,
  missing,
  signal,
  until,
} from './processes.ts'

export interface PatroniNode {
  readonly name: string
  readonly port: number
  readonly restPort: number
  readonly folder: string
}

interface Member {
  readonly name: string
  readonly role: string
  readonly state: string
  readonly lag?: number | string
}

type View = readonly Member[]

const superuser = { user: 'postgres', password: 'secret' }
const programsRoot = '/usr/lib/postgresql'
/** Patroni's least `ttl`: so long after its last word a leader may be replaced. */
const leaseSeconds = 20
const settleMs = 120_000
const lagMaxBytes = 1_000_000

/** What apt-get must install first, or undefined. */
export function missingPackages(): string | undefined {
  const packages: Readonly<Record<string, string>> = {
    patroni: 'patroni',
    etcd: 'etcd-server',
    etcdctl: 'etcd-client',
  }
  const names = missing(Object.keys(packages)).map((program) => packages[program])
  if (programsFolder() === undefined) names.push('postgresql')
  return names.length === 0 ? undefined : `apt-get install ${names.join(' ')}`
}

function programsFolder(): string | undefined {
  const versions = existsSync(programsRoot) ? readdirSync(programsRoot) : []
  const [newest] = versions
    .filter((version) => existsSync(join(programsRoot, version, 'bin/postgres')))
    .sort((one, other) => Number(other) - Number(one))
  return newest === undefined ? undefined : join(programsRoot, newest, 'bin')
}

export function versions(): string {
  const first = (command: string, ...args: string[]): string =>
    spawnSync(command, args, { encoding: 'utf8' }).stdout.trim().split('\n')[0] ?? ''
  return [
    first(join(programsFolder() ?? '', 'postgres'), '--version'),
    first('patroni', '--version'),
    first('etcd', '--version'),
  ].join(', ')
}

/** PostgreSQL refuses root, so as root everything runs as somebody else. */
function identity(): { uid: number; gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {}
  const fields = /^postgres:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':')
  return fields === undefined
    ? { uid: 65_534, gid: 65_534 }
    : { uid: Number(fields[2]), gid: Number(fields[3]) }
}

export class PatroniCluster {
  readonly nodes: readonly PatroniNode[]
  readonly #folder: string
  readonly #etcdPorts: readonly [number, number]
  readonly #patronis = new Map<PatroniNode, ChildProcess>()
  #etcd: ChildProcess | undefined
  #stopping = false

  static async create(folder: string): Promise<PatroniCluster> {
    return new PatroniCluster(folder, await freePorts(8))
  }

  private constructor(folder: string, ports: readonly number[]) {
    this.#folder = folder
    const [clientPort = 0, peerPort = 0, ...others] = ports
    this.#etcdPorts = [clientPort, peerPort]
    this.nodes = [1, 2, 3].map((number) => ({
      name: `node${number}`,
      port: others[2 * number - 2] ?? 0,
      restPort: others[2 * number - 1] ?? 0,
      folder: join(folder, `node${number}`),
    }))
  }

  /** Resolves when there is a leader and two that follow it, one of them synchronously. */
  async start(): Promise<void> {
    this.#startEtcd()
    await until('etcd answers', 20_000, async () => {
      const answer = await fetch(`http://${host}:${this.#etcdPorts[0]}/health`).catch(
        () => undefined,
      )
      return answer?.ok === true
    })
    for (const node of this.nodes) {
      makeFolder(node.folder)
      writeFileSync(
        join(node.folder, 'patroni.yml'),
        JSON.stringify(configuration(node, this.#etcdPorts[0])),
      )
      this.startNode(node)
    }
    await this.settled()
  }

  startNode(node: PatroniNode): void {
    if (this.#stopping) throw new Error('the cluster is being stopped')
    const command = ['patroni', join(node.folder, 'patroni.yml')]
    this.#patronis.set(
      node,
      launch(command, join(this.#folder, `${node.name}.log`), surroundings(node.folder)),
    )
  }

  /**
   * Resolves when every node is up, one leads and one follows it synchronously, and all three see
   * it so.
   */
  async settled(): Promise<void> {
    await until('the cluster is whole', settleMs, async () => {
      const views = await this.#views()
      const leaders = new Set(views.map((view) => nameOf(view, 'leader')))
      return views.length === this.nodes.length && leaders.size === 1 && views.every(isWhole)
    })
  }

  /** The node that leads in the eyes of most; one that was halted may still think that it does. */
  async leader(): Promise<PatroniNode | undefined> {
    return await this.#ofRole('leader')
  }

  async switchover(): Promise<void> {
    const leader = await this.leader()
    const candidate = await this.#ofRole('sync_standby')
    if (leader === undefined || candidate === undefined)
      throw new Error('there is nobody to switch to')
    const answer = await fetch(`http://${host}:${leader.restPort}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader: leader.name, candidate: candidate.name }),
      signal: AbortSignal.timeout(60_000),
    })
    if (!answer.ok) throw new Error(`the switchover was refused: ${await answer.text()}`)
  }

  /** Ends Patroni and PostgreSQL on a node at once. */
  async kill(node: PatroniNode): Promise<void> {
    await killFamilies(this.#processIds(node))
  }

  /** Halts Patroni and PostgreSQL on a node: connections stay open and nothing answers. */
  freeze(node: PatroniNode): void {
    signal(this.#processIds(node).flatMap(family), 'SIGSTOP')
  }

  thaw(node: PatroniNode): void {
    signal(this.#processIds(node).flatMap(family), 'SIGCONT')
  }

  /** Runs a statement as superuser. */
  async sql(node: PatroniNode, database: string, text: string): Promise<Record<string, unknown>[]> {
    const client = new Client({
      ...superuser,
      host,
      port: node.port,
      database,
      connectionTimeoutMillis: 500,
      query_timeout: 30_000,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      void client.end().catch(() => {})
    }
  }

  /** Ends everything that was started; the folder may be removed then. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const node of this.nodes) this.thaw(node)
    const etcd = this.#etcd?.pid
    await killFamilies([...(etcd === undefined ? [] : [etcd]), ...this.#patroniIds()])
    // With a last word, unlike a power cut, so that PostgreSQL gives its shared memory back.
    const postmasters = this.nodes.flatMap(postmasterOf)
    signal(postmasters, 'SIGQUIT')
    await until('PostgreSQL has ended', 10_000, () => !postmasters.some(isAlive)).catch(() =>
      killFamilies(postmasters),
    )
  }

  #startEtcd(): void {
    const [clientPort, peerPort] = this.#etcdPorts
    const folder = join(this.#folder, 'etcd')
    makeFolder(folder)
    const [clients, peers] = [`http://${host}:${clientPort}`, `http://${host}:${peerPort}`]
    const options = {
      name: 'etcd',
      'data-dir': join(folder, 'data'),
      'listen-client-urls': clients,
      'advertise-client-urls': clients,
      'listen-peer-urls': peers,
      'initial-advertise-peer-urls': peers,
      'initial-cluster': `etcd=${peers}`,
    }
    const args = Object.entries({ ...options, 'enable-v2': true }).map(
      ([name, value]) => `--${name}=${value}`,
    )
    this.#etcd = launch(['etcd', ...args], join(this.#folder, 'etcd.log'), surroundings(folder))
  }

  #patroniIds(): number[] {
    return this.nodes.flatMap((node) => this.#patroniOf(node))
  }

  #patroniOf(node: PatroniNode): number[] {
    const { pid } = this.#patronis.get(node) ?? {}
    return pid !== undefined && isAlive(pid) ? [pid] : []
  }

  #processIds(node: PatroniNode): number[] {
    return [...this.#patroniOf(node), ...postmasterOf(node)]
  }

  async #ofRole(role: string): Promise<PatroniNode | undefined> {
    const names = (await this.#views()).map((view) => nameOf(view, role))
    return this.nodes.find(
      ({ name }) => names.filter((each) => each === name).length > this.nodes.length / 2,
    )
  }

  /** The cluster as each node that answers sees it. */
  async #views(): Promise<readonly View[]> {
    const asked = this.nodes.map(async ({ restPort }) => {
      const answer = await fetch(`http://${host}:${restPort}/cluster`, {
        signal: AbortSignal.timeout(2000),
      })
      return ((await answer.json()) as { members: View }).members
    })
    return (await Promise.allSettled(asked)).flatMap((each) =>
      each.status === 'fulfilled' ? [each.value] : [],
    )
  }
}

function nameOf(view: View, role: string): string | undefined {
  return view.find((member) => member.role === role && isUp(member))?.name
}

function isUp({ state }: Member): boolean {
  return state === 'running' || state === 'streaming'
}

function isWhole(view: View): boolean {
  const near = view.every(
    ({ role, lag }) => role === 'leader' || (typeof lag === 'number' && lag < lagMaxBytes),
  )
  return view.length === 3 && view.every(isUp) && near && nameOf(view, 'sync_standby') !== undefined
}

function makeFolder(folder: string): void {
  mkdirSync(folder, { mode: 0o700 })
  const { uid, gid } = identity()
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid)
}

function surroundings(folder: string) {
  return {
    ...identity(),
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, LC_ALL: 'C.UTF-8', TZ: 'UTC' },
  }
}

/** The server's process on a node, where one runs. */
function postmasterOf({ folder }: PatroniNode): number[] {
  const path = join(folder, 'data/postmaster.pid')
  const processId = existsSync(path) ? Number.parseInt(readFileSync(path, 'utf8'), 10) : Number.NaN
  return Number.isInteger(processId) && isAlive(processId) ? [processId] : []
}

function configuration(node: PatroniNode, etcdPort: number) {
  const address = `${host}:${node.port}`
  const restAddress = `${host}:${node.restPort}`
  return {
    scope: 'plants',
    name: node.name,
    restapi: { listen: restAddress, connect_address: restAddress },
    // By version 2 of its interface: through version 3, Patroni 3.0 lets a leader that was halted
    // take its lease back from its successor without looking.
    etcd: { host: `${host}:${etcdPort}` },
    bootstrap: {
      dcs: clusterSettings,
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: join(node.folder, 'data'),
      bin_dir: programsFolder(),
      pgpass: join(node.folder, 'pgpass'),
      remove_data_directory_on_rewind_failure: true,
      authentication: {
        superuser: { username: superuser.user, password: superuser.password },
        replication: { username: 'replicator', password: superuser.password },
        rewind: { username: 'rewinder', password: superuser.password },
      },
      parameters: { unix_socket_directories: '', listen_addresses: host },
      pg_hba: [
        `host replication replicator ${host}/32 scram-sha-256`,
        `host all all ${host}/32 scram-sha-256`,
      ],
    },
  }
}

/** What every node has in common; strict, so that no write is acknowledged by one node alone. */
const clusterSettings = {
  ttl: leaseSeconds,
  loop_wait: 2,
  retry_timeout: 3,
  synchronous_mode: true,
  synchronous_mode_strict: true,
  postgresql: {
    use_pg_rewind: true,
    parameters: {
      password_encryption: 'scram-sha-256',
      max_connections: 100,
      shared_buffers: '32MB',
      dynamic_shared_memory_type: 'mmap',
      wal_keep_size: '512MB',
      log_line_prefix: '%m [%p] ',
    },
  },
}
