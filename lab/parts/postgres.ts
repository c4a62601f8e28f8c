// The store on PostgreSQL: creates of the service and of its peers on one server, in turn; beside
// them pgbench with the service's own statement, which is what the server does for a client that
// does nothing else.
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'
import { prepare } from '../../test/support/stores.ts'
import { type Bench, seed } from '../bench.ts'
import { runPinned, serverCore } from '../programs.ts'
import { peers, postgresService } from '../servers.ts'
import { baseStride, creates, seededPlant } from '../workloads.ts'
import { measureAll } from './throughput.ts'

const connections = 64
const rounds = 3
const seconds = 3
/** How many plants pgbench puts in a statement, and from how many clients. */
const pgbenchForms = [
  { plants: 1, clients: 64 },
  { plants: 32, clients: 1 },
  { plants: 64, clients: 1 },
  { plants: 32, clients: 2 },
] as const

export interface PostgresCreates {
  readonly contender: string
  readonly round: number
  readonly requestsPerSecond: number
}

export async function measurePostgres(bench: Bench): Promise<readonly PostgresCreates[]> {
  const postgres = await startPostgres({
    settings: {
      shared_buffers: '256MB',
      max_wal_size: '4GB',
      // For the whole of the service's statement.
      track_activity_query_size: '16kB',
    },
  })
  const stops: (() => Promise<unknown>)[] = [() => postgres.dispose()]
  try {
    let statement = ''
    const measured: { contender: string; createsPerSecond: () => Promise<number> }[] = []
    const onPostgres = peers.filter(({ store }) => store === 'postgres')
    for (const [number, contender] of [postgresService, ...onPostgres].entries()) {
      const url = await postgres.createDatabase(`bench_${number}`)
      if (contender === postgresService) await prepare(url)
      const server = await contender.start(url)
      stops.unshift(server.stop)
      await seed(server)
      // The last that the service has sent is a create.
      if (contender === postgresService) statement = await lastCreate(postgres)
      const named = { contender: contender.name, server }
      const createsPerSecond = async (): Promise<number> => {
        const plan = { workloads: [creates], seconds }
        const [found] = await measureAll(bench, named, plan, connections)
        return found?.requestsPerSecond ?? Number.NaN
      }
      measured.push({ contender: contender.name, createsPerSecond })
    }
    // pgbench comes with PostgreSQL's own packages, or is not there.
    const [program] = globSync(['/usr/lib/postgresql/*/bin/pgbench', '/usr/bin/pgbench'])
      .sort()
      .reverse()
    if (program !== undefined) {
      const url = await postgres.createDatabase('bench_pgbench')
      await prepare(url)
      for (const { plants, clients } of pgbenchForms) {
        const contender = `pgbench, ${clients} ${clients === 1 ? 'client' : 'clients'}, ${plants} ${plants === 1 ? 'plant' : 'plants'} a statement`
        const script = join(bench.folder, `pgbench-${plants}-${clients}.sql`)
        writeFileSync(script, pgbenchScript(statement, plants, clients))
        const createsPerSecond = async (): Promise<number> => {
          const options = ['-n', '-M', 'prepared', '-c', `${clients}`, '-T', `${seconds}`]
          const from = ['-D', `base=${bench.newBase()}`, '-f', script, url]
          const output = await runPinned([program, ...options, ...from], serverCore)
          const [, transactions] = /^tps = ([0-9.]+)/m.exec(output) ?? []
          if (transactions === undefined) throw new Error(`pgbench told no rate:\n${output}`)
          return Number(transactions) * plants
        }
        measured.push({ contender, createsPerSecond })
      }
    }
    const results: PostgresCreates[] = []
    for (const { contender, round, createsPerSecond } of bench.turns(
      'PostgreSQL',
      rounds,
      measured,
    ))
      results.push({ contender, round, requestsPerSecond: await createsPerSecond() })
    return results
  } finally {
    for (const stop of stops) await stop()
  }
}

async function lastCreate(postgres: PostgresServer): Promise<string> {
  const [sent] = await postgres.sql(
    "select query from pg_stat_activity where application_name = 'plants' and query like '%insert into plants%'",
  )
  if (sent === undefined) throw new Error('PostgreSQL does not tell what the service sent')
  return String(sent['query'])
}

/** The service's statement, its parameters made by the server. Each client counts for itself. */
function pgbenchScript(statement: string, plants: number, clients: number): string {
  const ids = `array(select generate_series(:n::bigint, :n::bigint + ${plants - 1}))`
  const filled = (value: string): string => `array_fill(${value}, array[${plants}])`
  const parameters = [
    `'pgbench'`,
    '0',
    ':n',
    filled(`'pgbench'::text`),
    ids,
    filled(`'${seededPlant.name}'::text`),
    filled(`'${seededPlant.tag}'::text`),
    filled('null::text'),
  ]
  const filledIn = parameters.reduce(
    (text, value, index) => text.replaceAll(`$${index + 1}`, value),
    statement,
  )
  // Clients are further apart than one of them gets in a run.
  const clientStride = Math.floor(baseStride / clients)
  return `\\set base :base + ${plants}\n\\set n :base + :client_id * ${clientStride}\n${filledIn};\n`
}
