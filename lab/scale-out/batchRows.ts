// scripts/bun lab/scale-out/batchRows.ts: what it costs that a batch keeps a row in the table
// `batches`: the store's statements with it and without, on one connection, in turn.
import { Client } from 'pg'
import { systemClock } from '../../src/clock.ts'
import { statements } from '../../src/stores/postgres/statements.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { prepare } from '../../test/support/stores.ts'
import { median } from '../statistics.ts'

const rounds = 9
const secondsEach = 0.5

/** The writes of a batch without its row. Its own three parameters come first. */
function withoutRow(text: string): string {
  const [, writes] = /with done as \(([\s\S]*)\)\s+insert into batches/.exec(text) ?? []
  if (writes === undefined) throw new Error(`there is no row in: ${text}`)
  return writes.replace(/\$(\d)/g, (_, number: string) => `$${Number(number) - 3}`)
}

const forms = ['createPlants', 'deletePlants'].flatMap((operation) =>
  [1, 64].flatMap((plants) =>
    [false, true].map((keepsRow) => ({ operation, plants, keepsRow, rates: [], bytes: [] })),
  ),
) as {
  readonly operation: 'createPlants' | 'deletePlants'
  readonly plants: number
  readonly keepsRow: boolean
  readonly rates: number[]
  readonly bytes: number[]
}[]

const server = await startPostgres()
const client = new Client(server.url())
try {
  await prepare(server.url())
  await client.connect()
  await client.query(statements.greeting.text, ['0'])
  const logBytes = async (): Promise<number> => {
    const [row] = await server.sql("select pg_current_wal_insert_lsn() - '0/0' as bytes")
    return Number(row?.['bytes'])
  }
  for (let round = 0; round < rounds; round += 1) {
    // A create's page is written whole after a checkpoint; all begin in the same way.
    for (const form of forms) {
      const { operation, plants, keepsRow } = form
      const { name, text } = statements[operation]
      let id = (round * 2 + Number(keepsRow)) * 100_000_000 + plants * 1_000_000
      const startBytes = await logBytes()
      const startMs = systemClock.monotonicMs()
      let batches = 0
      for (; systemClock.monotonicMs() < startMs + secondsEach * 1000; batches += 1) {
        const ids = Array.from({ length: plants }, () => id++)
        const columns = [ids.map(() => 'a'), ids]
        const texts = ['Monstera', 'shade', null].map((value) => ids.map(() => value))
        if (operation === 'createPlants') columns.push(...(texts as string[][]))
        const values = keepsRow ? [operation, 0, id, ...columns] : columns
        await client.query(
          keepsRow
            ? { name, text, values }
            : { name: `${name} bare`, text: withoutRow(text), values },
        )
      }
      const seconds = (systemClock.monotonicMs() - startMs) / 1000
      form.rates.push((batches * plants) / seconds)
      form.bytes.push(((await logBytes()) - startBytes) / (batches * plants))
    }
    process.stderr.write('.')
  }
} finally {
  await client.end()
  await server.dispose()
}
console.log(
  '\n| plants in a batch | row | creates per second | bytes of log for each | deletes per second | bytes of log for each |\n|---:|---|---:|---:|---:|---:|',
)
for (const plants of [1, 64])
  for (const keepsRow of [false, true]) {
    const cells = forms
      .filter((form) => form.plants === plants && form.keepsRow === keepsRow)
      .flatMap(({ rates, bytes }) => [median(rates), median(bytes)])
      .map((number) => Math.round(number).toLocaleString('en'))
    console.log(`| ${plants} | ${keepsRow ? 'with' : 'without'} | ${cells.join(' | ')} |`)
  }
