// The store on PostgreSQL: creates of the service and of its peers on one server, in turn; beside
// them pgbench with the service's own statement, which is what the server does for a client that
// does nothing else.
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { statements } from '../../src/stores/postgres/statements.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'
import { prepare } from '../../test/support/stores.ts'
import { type Bench, type NamedServer, rotated, seed } from '../bench.ts'
import { runPinned, serverCore } from '../programs.ts'
import { type BenchServer, type Contender, peers, postgresService } from '../servers.ts'
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
    settings: { shared_buffers: '256MB', max_wal_size: '4GB' },
  })
  const stops: (() => Promise<void>)[] = [() => postgres.dispose()]
  try {
    const contenders: (readonly [string, () => Promise<number>])[] = []
    for (const contender of [
      postgresService,
      ...peers.filter(({ store }) => store === 'postgres'),
    ]) {
      const server = await startOn(postgres, contender, contenders.length)
      stops.unshift(server.stop)
      contenders.push([
        contender.name,
        () => createsOf(bench, { contender: contender.name, server }),
      ])
    }
    contenders.push(...(await pgbenchContenders(bench, postgres)))
    return await measure(bench, contenders)
  } finally {
    for (const stop of stops) await stop()
  }
}

async function measure(
  bench: Bench,
  contenders: readonly (readonly [string, () => Promise<number>])[],
): Promise<readonly PostgresCreates[]> {
  const results: PostgresCreates[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (const [contender, createsPerSecond] of rotated(contenders, round)) {
      bench.tell(`on PostgreSQL, round ${round + 1} of ${rounds}: ${contender}`)
      results.push({ contender, round, requestsPerSecond: await createsPerSecond() })
    }
  }
  return results
}

async function startOn(
  postgres: PostgresServer,
  contender: Contender,
  number: number,
): Promise<BenchServer> {
  const url = await postgres.createDatabase(`bench_${number}`)
  if (contender === postgresService) await prepare(url)
  const server = await contender.start(url)
  await seed(server)
  return server
}

async function createsOf(
  bench: Bench,
  named: Pick<NamedServer, 'contender' | 'server'>,
): Promise<number> {
  const [measured] = await measureAll(bench, named, { workloads: [creates], seconds }, connections)
  return measured?.requestsPerSecond ?? Number.NaN
}

/** None where pgbench is not there: it comes with PostgreSQL's own packages. */
async function pgbenchContenders(
  bench: Bench,
  postgres: PostgresServer,
): Promise<readonly (readonly [string, () => Promise<number>])[]> {
  const [program] = ['/usr/bin/pgbench', ...globSync('/usr/lib/postgresql/*/bin/pgbench')]
    .filter((path) => globSync(path).length > 0)
    .reverse()
  if (program === undefined) return []
  const url = await postgres.createDatabase('bench_pgbench')
  await prepare(url)
  return pgbenchForms.map(({ plants, clients }) => {
    const name = `pgbench, ${clients} ${clients === 1 ? 'client' : 'clients'}, ${plants} ${plants === 1 ? 'plant' : 'plants'} a statement`
    const script = join(bench.folder, `pgbench-${plants}-${clients}.sql`)
    writeFileSync(script, pgbenchScript(plants, clients))
    return [
      name,
      async () => {
        const options = [
          '-n',
          '-M',
          'prepared',
          '-c',
          String(clients),
          '-T',
          String(seconds),
          '-D',
          `base=${bench.newBase()}`,
          '-f',
          script,
        ]
        const output = await runPinned([program, ...options, url], serverCore)
        const [, transactions] = /^tps = ([0-9.]+)/m.exec(output) ?? []
        if (transactions === undefined) throw new Error(`pgbench told no rate:\n${output}`)
        return Number(transactions) * plants
      },
    ] as const
  })
}

/** The service's statement, its parameters made by the server. Each client counts for itself. */
function pgbenchScript(plants: number, clients: number): string {
  const ids = `array(select generate_series(:n::bigint, :n::bigint + ${plants - 1}))`
  const filled = (value: string): string => `array_fill(${value}, array[${plants}])`
  const parameters = [
    `'pgbench'`,
    ids,
    filled(`'${seededPlant.name}'::text`),
    filled(`'${seededPlant.tag}'::text`),
    filled('null::text'),
    ids,
    '9e9',
  ]
  const statement = parameters.reduce(
    (text, value, index) => text.replaceAll(`$${index + 1}`, value),
    statements.createPlants.text,
  )
  // Clients are further apart than one of them gets in a run.
  const clientStride = Math.floor(baseStride / clients)
  return `\\set base :base + ${plants}\n\\set n :base + :client_id * ${clientStride}\n${statement};\n`
}
