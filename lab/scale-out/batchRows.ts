// scripts/bun lab/scale-out/batchRows.ts: what it costs that a batch keeps a row in the table
// `batches`: the store's statements with it and without, on one connection, in turn.
import { Client } from 'pg'
import { systemClock } from '../../src/clock.ts'
import { openStore } from '../../src/stores/open.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres.ts'
import { locationOf, prepare, storeOptions } from '../../test/support/stores.ts'
import { median } from '../statistics.ts'

const rounds = 9
const secondsEach = 0.5
const sizes = [1, 64]

interface Form {
  readonly operation: 'create' | 'delete'
  readonly plants: number
  readonly keepsRow: boolean
  readonly text: string
  readonly rates: number[]
  readonly bytes: number[]
}

/** Each operation in each size, with the row and without. */
async function formsOf(server: PostgresServer): Promise<readonly Form[]> {
  const texts = await sentByStore(server)
  return (['create', 'delete'] as const).flatMap((operation) =>
    sizes.flatMap((plants) =>
      [false, true].map((keepsRow) => {
        const text = keepsRow ? texts[operation] : withoutRow(texts[operation])
        return { operation, plants, keepsRow, text, rates: [], bytes: [] }
      }),
    ),
  )
}

/** The statements with which the store creates and deletes. */
async function sentByStore(server: PostgresServer): Promise<Record<'create' | 'delete', string>> {
  const store = await openStore(locationOf(server.url()), storeOptions)
  const last = async (): Promise<string> => {
    const [sent] = await server.sql(
      "select query from pg_stat_activity where query like '%insert into batches%' and pid <> pg_backend_pid()",
    )
    return String(sent?.['query'])
  }
  await store.plants.create('a', { id: 1n, name: 'x', tag: null, idempotencyKey: null })
  const create = await last()
  await store.plants.delete('a', 1n)
  const remove = await last()
  await store.close()
  return { create, delete: remove }
}

/** The writes of a batch alone. The three parameters of its row come first. */
function withoutRow(text: string): string {
  const [, writes] = /with done as \(([\s\S]*)\)\s+insert into batches/.exec(text) ?? []
  if (writes === undefined) throw new Error(`there is no row in: ${text}`)
  return writes.replace(/\$(\d)/g, (_, number: string) => `$${Number(number) - 3}`)
}

async function measure(
  server: PostgresServer,
  client: Client,
  form: Form,
  firstId: number,
): Promise<void> {
  const { operation, plants, keepsRow, text } = form
  const logBytes = async (): Promise<number> => {
    const [row] = await server.sql("select pg_current_wal_insert_lsn() - '0/0' as bytes")
    return Number(row?.['bytes'])
  }
  const startBytes = await logBytes()
  const startMs = systemClock.monotonicMs()
  let id = firstId
  while (systemClock.monotonicMs() < startMs + secondsEach * 1000) {
    const ids = Array.from({ length: plants }, () => id++)
    const written = operation === 'create' ? ['Monstera', 'shade', null] : []
    const columns = ['a', undefined, ...written].map((value) =>
      value === undefined ? ids : ids.map(() => value),
    )
    const name = `${operation} ${keepsRow}`
    await client.query({ name, text, values: keepsRow ? [operation, 0, id, ...columns] : columns })
  }
  const written = id - firstId
  form.rates.push((written / (systemClock.monotonicMs() - startMs)) * 1000)
  form.bytes.push(((await logBytes()) - startBytes) / written)
}

const server = await startPostgres({ settings: { track_activity_query_size: '16kB' } })
const client = new Client(server.url())
try {
  await prepare(server.url())
  await client.connect()
  // As the store has it.
  await client.query('set plan_cache_mode = force_generic_plan; set enable_seqscan = off')
  await client.query('set enable_hashjoin = off; set enable_mergejoin = off')
  const forms = await formsOf(server)
  for (let round = 0; round < rounds; round += 1) {
    // The deletes find the plants that the creates of the round have made.
    for (const form of forms)
      await measure(server, client, form, (round * 4 + (forms.indexOf(form) % 4)) * 10_000_000)
    process.stderr.write('.')
  }
  console.log(
    '\n| plants in a batch | its row | creates per second | bytes of log for each | deletes per second | bytes of log for each |\n|---:|---|---:|---:|---:|---:|',
  )
  for (const plants of sizes)
    for (const keepsRow of [false, true]) {
      const cells = forms
        .filter((form) => form.plants === plants && form.keepsRow === keepsRow)
        .flatMap(({ rates, bytes }) => [median(rates), median(bytes)])
        .map((number) => Math.round(number).toLocaleString('en'))
      console.log(`| ${plants} | ${keepsRow ? 'yes' : 'no'} | ${cells.join(' | ')} |`)
    }
} finally {
  await client.end()
  await server.dispose()
}
