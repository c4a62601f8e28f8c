// Three PostgreSQL servers with the Citus extension, as an operator would run them on three
// machines: a coordinator, and two workers that hold the plants.
import { globSync } from 'node:fs'
import { host } from '../../test/support/operatingSystem.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'

export interface CitusCluster {
  readonly coordinator: PostgresServer
  readonly workers: readonly PostgresServer[]
}

/** The newest of Debian's PostgreSQL that has the extension. */
export function citusPrograms(): string | undefined {
  const versions = globSync('/usr/share/postgresql/*/extension/citus.control').map((path) =>
    Number(path.split('/')[4]),
  )
  return versions.length === 0 ? undefined : `/usr/lib/postgresql/${Math.max(...versions)}`
}

/** Its servers are put into `servers` as soon as they run, for the caller to end. */
export async function startCitus(
  programs: string,
  servers: PostgresServer[],
): Promise<CitusCluster> {
  const settings = {
    shared_preload_libraries: 'citus',
    wal_level: 'logical',
    max_connections: '200',
    max_prepared_transactions: '200',
    shared_buffers: '64MB',
  }
  const start = async (): Promise<PostgresServer> => {
    const server = await startPostgres({ programs, settings })
    servers.push(server)
    await server.sql('create extension citus')
    // The nodes reach each other as the role whose statement they carry out, and as superuser.
    const { password } = new URL(server.url())
    await server.sql(`insert into pg_dist_authinfo
      values (0, 'plants', 'password=${password}'), (0, 'postgres', 'password=${password}')`)
    return server
  }
  const [coordinator, ...workers] = [await start(), await start(), await start()]
  await coordinator.sql(`select citus_set_coordinator_host('${host}', ${coordinator.port})`)
  for (const { port } of workers) await coordinator.sql(`select citus_add_node('${host}', ${port})`)
  return { coordinator, workers }
}

/** The worker that holds an account, once the tables are there. */
export async function workerOf(
  { coordinator, workers }: CitusCluster,
  account: string,
): Promise<PostgresServer> {
  const [place] = await coordinator.sql(`
    select nodeport as port from pg_dist_shard_placement
    where shardid = get_shard_id_for_distribution_column('plants', '${account}')`)
  const worker = workers.find(({ port }) => port === Number(place?.['port']))
  if (worker === undefined) throw new Error(`no worker holds the account ${account}`)
  return worker
}
