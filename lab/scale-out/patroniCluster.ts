// Three PostgreSQL servers under Patroni, with one etcd, as an operator would run them on three
// machines: synchronous replication, and a leader that is replaced when it falls silent.
import { type ChildProcess, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from '../../test/support/clock.ts'
import {
  areAlive,
  asOther,
  family,
  freePort,
  giveAway,
  host,
  killFamilies,
  send,
} from '../../test/support/operatingSystem.ts'
import { runSql } from '../../test/support/postgres.ts'
import { launch, missingPrograms } from '../programs.ts'

export interface PatroniNode {
  readonly name: string
  readonly port: number
  readonly restPort: number
  readonly folder: string
}

/** A node as another one, or itself, sees it. */
interface Member {
  readonly name: string
  readonly role: string
  readonly state: string
  readonly lag?: number | string
}

type View = readonly Member[]

const superuser = { username: 'postgres', password: 'secret' }
/** Patroni's least `ttl`: so long after its last word a leader may be replaced. */
const leaseSeconds = 20
const settleMs = 120_000
const lagMaxBytes = 1_000_000

/** What must be installed first, as a sentence. */
export function missingPackages(): string | undefined {
  const packages = { patroni: 'patroni', etcd: 'etcd-server', etcdctl: 'etcd-client' }
  return missingPrograms(
    programsFolder() === undefined ? { ...packages, postgres: 'postgresql' } : packages,
  )
}

/** Of the newest PostgreSQL of Debian's packages. */
function programsFolder(): string | undefined {
  const version = (path: string): number => Number(path.split('/')[4])
  const [newest] = globSync('/usr/lib/postgresql/*/bin/postgres').sort(
    (one, other) => version(other) - version(one),
  )
  return newest && dirname(newest)
}

export function versions(): string {
  return [`${programsFolder()}/postgres`, 'patroni', 'etcd']
    .map((program) => spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout)
    .map((output) => output.trim().split('\n')[0])
    .join(', ')
}

export class PatroniCluster {
  readonly nodes: readonly PatroniNode[]
  readonly #folder: string
  readonly #etcdPorts: readonly [clients: number, peers: number]
  readonly #patronis = new Map<PatroniNode, ChildProcess>()
  #etcd: ChildProcess | undefined
  #stopping = false

  static async create(folder: string): Promise<PatroniCluster> {
    const nodes: PatroniNode[] = []
    for (const name of ['node1', 'node2', 'node3'])
      nodes.push({
        name,
        port: await freePort(),
        restPort: await freePort(),
        folder: join(folder, name),
      })
    return new PatroniCluster(folder, nodes, [await freePort(), await freePort()])
  }

  private constructor(
    folder: string,
    nodes: readonly PatroniNode[],
    etcdPorts: readonly [number, number],
  ) {
    this.#folder = folder
    this.nodes = nodes
    this.#etcdPorts = etcdPorts
  }

  /** Resolves when there is a leader and two that follow it, one of them synchronously. */
  async start(): Promise<void> {
    const [clients, peers] = this.#etcdPorts.map((port) => `http://${host}:${port}`)
    const options = {
      name: 'etcd',
      'data-dir': 'data',
      'listen-client-urls': clients,
      'advertise-client-urls': clients,
      'listen-peer-urls': peers,
      'initial-advertise-peer-urls': peers,
      'initial-cluster': `etcd=${peers}`,
      'enable-v2': true,
    }
    const etcd = ['etcd', ...Object.entries(options).map(([name, value]) => `--${name}=${value}`)]
    this.#etcd = this.#launch('etcd', etcd)
    await until('etcd answers', async () => {
      const answer = await fetch(`${clients}/health`).catch(() => undefined)
      return answer?.ok === true
    })
    for (const node of this.nodes) this.startNode(node)
    await this.settled()
  }

  startNode(node: PatroniNode): void {
    if (this.#stopping) throw new Error('the cluster is being stopped')
    const settings = JSON.stringify(configuration(node, this.#etcdPorts[0]))
    const file = join(this.#folder, `${node.name}.yml`)
    writeFileSync(file, settings)
    this.#patronis.set(node, this.#launch(node.name, ['patroni', file]))
  }

  #launch(name: string, command: readonly string[]): ChildProcess {
    const cwd = join(this.#folder, name)
    mkdirSync(cwd, { mode: 0o700, recursive: true })
    giveAway(cwd)
    const env = { HOME: cwd, LC_ALL: 'C.UTF-8', TZ: 'UTC' }
    return launch(command, `${cwd}.log`, { ...asOther, cwd, env })
  }

  /**
   * Resolves when every node is up, one leads and one follows it synchronously, and all three see
   * it so.
   */
  async settled(): Promise<void> {
    const isWhole = async (): Promise<boolean> => {
      const views = await this.#views()
      const leaders = new Set(views.map((view) => nameOf(view, 'leader')))
      return views.length === 3 && leaders.size === 1 && views.every(seesAll)
    }
    await until('the cluster is whole', isWhole, settleMs)
  }

  /** The node that leads in the eyes of most; one that was halted may still think that it does. */
  leader(): Promise<PatroniNode | undefined> {
    return this.#ofRole('leader')
  }

  async switchover(): Promise<void> {
    const [leader, candidate] = [await this.leader(), await this.#ofRole('sync_standby')]
    if (leader === undefined || candidate === undefined)
      throw new Error('there is no node to switch to')
    const answer = await fetch(`http://${host}:${leader.restPort}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader: leader.name, candidate: candidate.name }),
      signal: AbortSignal.timeout(60_000),
    })
    if (!answer.ok) throw new Error(`the switchover was refused: ${await answer.text()}`)
  }

  /** Ends Patroni and PostgreSQL on a node at once. */
  kill(node: PatroniNode): Promise<void> {
    return killFamilies(this.#processIds(node))
  }

  /** Whether Patroni or PostgreSQL is there on a node, halted or not. */
  runs(node: PatroniNode): boolean {
    return this.#processIds(node).length > 0
  }

  /** Halts Patroni and PostgreSQL on a node: connections stay open and nothing answers. */
  freeze(node: PatroniNode): void {
    send(this.#processIds(node).flatMap(family), 'SIGSTOP')
  }

  thaw(node: PatroniNode): void {
    send(this.#processIds(node).flatMap(family), 'SIGCONT')
  }

  /** Runs a statement as superuser, in the database "postgres". */
  async sql({ port }: PatroniNode, text: string): Promise<void> {
    const limits = { connectionTimeoutMillis: 500, query_timeout: 30_000 }
    await runSql({ port, database: 'postgres', ...limits }, text)
  }

  /** Ends everything that was started; the folder may be removed then. */
  async stop(): Promise<void> {
    this.#stopping = true
    for (const node of this.nodes) this.thaw(node)
    const patronis = [this.#etcd, ...this.#patronis.values()].flatMap((child) => child?.pid ?? [])
    await killFamilies(patronis.filter((processId) => areAlive([processId])))
    // With a last word, unlike a power cut, so that PostgreSQL gives its shared memory back.
    const postmasters = this.nodes.flatMap(postmasterOf)
    send(postmasters, 'SIGQUIT')
    const ended = until('PostgreSQL has ended', () => !areAlive(postmasters), 10_000)
    await ended.catch(() => killFamilies(postmasters))
  }

  #processIds(node: PatroniNode): number[] {
    const patroni = this.#patronis.get(node)?.pid
    const isThere = patroni !== undefined && areAlive([patroni])
    return [...(isThere ? [patroni] : []), ...postmasterOf(node)]
  }

  async #ofRole(role: string): Promise<PatroniNode | undefined> {
    const names = (await this.#views()).map((view) => nameOf(view, role))
    return this.nodes.find(({ name }) => names.filter((each) => each === name).length > 1)
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

function seesAll(view: View): boolean {
  const near = view.every(
    ({ role, lag }) => role === 'leader' || (typeof lag === 'number' && lag < lagMaxBytes),
  )
  return view.length === 3 && view.every(isUp) && near && nameOf(view, 'sync_standby') !== undefined
}

/** The server's process on a node, if one runs. */
function postmasterOf({ folder }: PatroniNode): number[] {
  const path = join(folder, 'data/postmaster.pid')
  const processId = existsSync(path) ? Number.parseInt(readFileSync(path, 'utf8'), 10) : Number.NaN
  return Number.isInteger(processId) && areAlive([processId]) ? [processId] : []
}

/** Strict, so that no write is acknowledged by one node alone. */
function configuration({ name, port, restPort, folder }: PatroniNode, etcdPort: number) {
  const [address, restAddress] = [`${host}:${port}`, `${host}:${restPort}`]
  return {
    scope: 'plants',
    name,
    restapi: { listen: restAddress, connect_address: restAddress },
    // By version 2 of its interface: through version 3, Patroni 3.0 lets a leader that was halted
    // take its lease back from its successor without looking.
    etcd: { host: `${host}:${etcdPort}` },
    bootstrap: {
      dcs: {
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
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: join(folder, 'data'),
      bin_dir: programsFolder(),
      pgpass: join(folder, 'pgpass'),
      remove_data_directory_on_rewind_failure: true,
      authentication: {
        superuser,
        replication: { ...superuser, username: 'replicator' },
        rewind: { ...superuser, username: 'rewinder' },
      },
      parameters: { unix_socket_directories: '', listen_addresses: host },
      pg_hba: [
        `host replication replicator ${host}/32 scram-sha-256`,
        `host all all ${host}/32 scram-sha-256`,
      ],
    },
  }
}
