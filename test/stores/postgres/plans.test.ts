// No statement of a request gets slower with the plants that it does not concern: each finds its
// rows by the primary key, and none sorts. So it is from the first plant on, before the server has
// looked how many there are.
import { describe, expect, test } from 'bun:test'
import { statements } from '../../../src/stores/postgres/statements.ts'
import { sharedPostgres } from '../../support/postgres.ts'
import { prepare } from '../../support/stores.ts'

/** How each statement of a request is called, with values of the right kind. */
const calls: Readonly<Record<string, string>> = {
  listPlants: "'a', 0, 9223372036854775807, 21, 1000",
  listLongPlants: "'a', 0, 9223372036854775807, 21, 16777216",
  keptPlants: "'a', 0, 9223372036854775807, 21, 16777216",
  nthPlantId: "'a', 0, 100",
  findPlant: "'a', 7",
  createPlants: "'a', 0, 1, '{a, b}', '{7, 8}', '{x, y}', '{x, y}', '{x, y}'",
  deletePlants: "'a', 0, 1, '{a, b}', '{7, 8}'",
  findBatch: "'a', 0, 1",
  forgetBatches: "'a', 1000",
  countPlantsOf: "'a'",
  findToken: "'\\x00'",
  keptTokens: "'\\x00', '\\xff', 10",
  noteTokenUse: "'x', 1",
  revokeToken: "'x', 1",
}

const fill = (plants: number): string => `
  insert into plants select 'account ' || n % 50, n, 'name' from generate_series(1, ${plants}) as n;
  insert into batches select 'account ' || n % 50, n, n, array[n] from generate_series(1, ${plants}) as n;
  insert into tokens select sha256(n::text::bytea), 'token ' || n, 'a', '', '', 0 from generate_series(1, ${plants / 10}) as n;`

/** What the server knows of the tables when it plans. */
const states: Readonly<Record<string, string>> = {
  unknown: '',
  empty: 'analyze',
  tiny: `${fill(1)} analyze`,
  small: `${fill(30)} analyze`,
  emptied: `${fill(50_000)} delete from plants; delete from batches; analyze`,
  full: `${fill(50_000)} analyze`,
}

describe.each(Object.entries(states))('in tables that are %s', (state, preparation) => {
  test('every statement on plants, batches and tokens finds its rows by an index, and sorts nothing', async () => {
    const server = await sharedPostgres()
    const database = `plans_${state}_${process.pid}`
    await prepare(await server.createDatabase(database))
    await server.sql(preparation, database)
    for (const [statement, values] of Object.entries(calls)) {
      const { text } = statements[statement as keyof typeof statements]
      const greeting = statements.greeting.text.replace('$1', "'0'")
      const rows = await server.sql(
        `${greeting}; prepare it as ${text}; explain execute it(${values})`,
        database,
      )
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      const scans = plan.match(/Index (?:Only )?Scan (?:using|on)/g) ?? []
      const conditions = plan.match(/Index Cond/g) ?? []
      expect(conditions.length, `${statement}\n${plan}`).toBe(scans.length)
      if (statement !== 'createPlants') expect(scans).not.toBeEmpty()
      expect(plan, statement).not.toMatch(/Seq Scan|Sort|Hash|Merge/)
    }
  })
})
