// scripts/bun lab/tableForms.ts: which form of SQLite's tables keeps small plants fast, alone and
// beside plants of a megabyte of other accounts. Microseconds of processor time, medians of
// alternating rounds.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { connect } from '../src/stores/sqlite/connection.ts'
import { prepareFile } from '../src/stores/sqlite/file.ts'
import { median } from './statistics.ts'

const rounds = 25
/** Created by turns, so that one account's plants do not happen to lie side by side. */
const accountsCount = 50
const plantsEach = 1000
const largeCount = 300
const largeLength = 1_000_000
const batchLength = 64

const idMin = -(2n ** 63n)
const idMax = 2n ** 63n - 1n
const keys = 'account text not null, id integer not null'
const texts = 'name text not null, tag text'
const range =
  'where account = cast(? as text) and id between ? and ? order by id limit cast(? as integer)'
const one = 'where account = cast(? as text) and id = cast(? as integer)'

type Create = (account: string, id: number, name: string) => void

interface Form {
  readonly tables: string
  readonly select: string
  readonly creator: (database: DatabaseSync) => Create
}

function oneTable(options: string): Form {
  return {
    tables: `create table plants (${keys}, ${texts}, idempotency_key text, ${options}`,
    select: 'select id, name, tag from plants',
    creator: (database) => {
      const create = database.prepare(
        'insert into plants values (?, ?, ?, ?, null) on conflict do nothing',
      )
      return (account, id, name) => void create.run(account, id, name, 'indoor')
    },
  }
}

/** Texts of more than so many bytes in a table of their own. */
function twoTables(shortBytesMax: number): Form {
  return {
    tables: `
      create table plants (
        ${keys}, short_name text not null, short_tag text, idempotency_key text, long_text integer, primary key (account, id)
      ) strict, without rowid;
      create table long_texts (number integer not null primary key, ${texts}) strict;
      create trigger long_text_goes after delete on plants when old.long_text is not null begin
        delete from long_texts where number = old.long_text;
      end`,
    select: `
      select id, iif(long_text is null, short_name, name) as name, iif(long_text is null, short_tag, tag) as tag
      from plants left join long_texts on number = long_text`,
    creator: (database) => {
      const create = database.prepare(
        'insert into plants values (?, ?, ?, ?, null, ?) on conflict do nothing',
      )
      const keepText = database.prepare(
        'insert into long_texts (name, tag) select ?, ? where not exists (select 1 from plants where account = ? and id = ?)',
      )
      return (account, id, name) => {
        if (Buffer.byteLength(name) <= shortBytesMax) create.run(account, id, name, 'indoor', null)
        else
          create.run(
            account,
            id,
            '',
            null,
            keepText.run(name, 'indoor', account, id).lastInsertRowid,
          )
      }
    },
  }
}

const forms: Readonly<Record<string, Form>> = {
  'one table without rowid': oneTable('primary key (account, id)) strict, without rowid'),
  'one table with rowid and index': oneTable('unique (account, id)) strict'),
  'long texts in a table of their own': twoTables(450),
  'all texts in a table of their own': twoTables(-1),
}

interface Measured {
  readonly step: string
  readonly times: number
  readonly once: () => void
  readonly resultsUs: number[]
}

class Filled {
  readonly steps: readonly Measured[]
  readonly #database: DatabaseSync
  readonly #create: Create
  readonly #list: StatementSync

  constructor(path: string, form: Form, large: boolean) {
    prepareFile(path, { use: 'create' })
    this.#database = connect(path)
    this.#database.exec(form.tables)
    this.#create = form.creator(this.#database)
    this.#list = this.#database.prepare(`${form.select} ${range}`)
    this.#fill(large)
    this.steps = this.#measured(this.#database.prepare(`${form.select} ${one}`))
  }

  #fill(large: boolean): void {
    this.#inBatches(plantsEach, (id) => {
      for (let n = 0; n < accountsCount; n += 1)
        this.#create(`account ${n}`, id, 'Monstera deliciosa')
    })
    this.#inBatches(20, (id) => this.#create('long', id, 'n'.repeat(2000)))
    const name = 'n'.repeat(largeLength)
    // Accounts that sort just before and just behind the one that is asked.
    if (large)
      this.#inBatches(largeCount, (id) =>
        this.#create(id % 2 === 0 ? 'account 6~' : 'account 7~', id, name),
      )
  }

  #measured(find: StatementSync): readonly Measured[] {
    for (const statement of [find, this.#list]) statement.setReadBigInts(true)
    const remove = this.#database.prepare('delete from plants where account = ? and id = ?')
    const fresh = (id: number): number => plantsEach + id
    const steps: readonly (readonly [step: string, times: number, once: () => void])[] = [
      ['list of 1', 200, () => this.#listed('account 7', 1)],
      ['list of 20', 200, () => this.#listed('account 7', 20)],
      ['list of 1,000', 10, () => this.#listed('account 7', 1000)],
      ['list of 20 of 2 kB', 20, () => this.#listed('long', 20)],
      ['find', 500, () => void find.get('account 7', 500)],
      [
        '64 creates',
        1,
        () =>
          this.#inBatches(batchLength, (id) =>
            this.#create('account 7', fresh(id), 'Monstera deliciosa'),
          ),
      ],
      [
        '64 deletes',
        1,
        () => this.#inBatches(batchLength, (id) => void remove.run('account 7', fresh(id))),
      ],
      [
        '64 creates of 2 kB',
        1,
        () =>
          this.#inBatches(batchLength, (id) => this.#create('long', fresh(id), 'n'.repeat(2000))),
      ],
      [
        '64 deletes of 2 kB',
        1,
        () => this.#inBatches(batchLength, (id) => void remove.run('long', fresh(id))),
      ],
    ]
    return steps.map(([step, times, once]) => ({ step, times, once, resultsUs: [] }))
  }

  #listed(account: string, limit: number): void {
    let rows = 0
    for (const _ of this.#list.iterate(account, idMin, idMax, limit) as Iterable<unknown>) rows += 1
    if (rows !== limit) throw new Error(`${rows} plants instead of ${limit}`)
  }

  #inBatches(count: number, write: (id: number) => void): void {
    for (let begun = 0; begun < count; begun += batchLength) {
      this.#database.exec('begin immediate')
      for (let id = begun; id < Math.min(count, begun + batchLength); id += 1) write(id)
      this.#database.exec('commit')
    }
  }

  close(): void {
    this.#database.close()
  }
}

function processorUs({ times, once }: Measured): number {
  const before = process.cpuUsage()
  for (let n = 0; n < times; n += 1) once()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / times
}

const folder = mkdtempSync(join(tmpdir(), 'plants-forms-'))
try {
  const stores = Object.entries(forms).flatMap(([name, form], n) =>
    [false, true].map((large) => ({
      name,
      large,
      filled: new Filled(join(folder, `${n}${large}.db`), form, large),
    })),
  )
  // The first round does not count: code is compiled, pages are read.
  for (let round = 0; round <= rounds; round += 1)
    for (const { filled } of stores)
      for (const measured of filled.steps) {
        const us = processorUs(measured)
        if (round > 0) measured.resultsUs.push(us)
      }
  console.log(
    `| form | beside large plants | ${stores[0]?.filled.steps.map(({ step }) => step).join(' | ')} |`,
  )
  for (const { name, large, filled } of stores) {
    const medians = filled.steps.map(({ resultsUs }) => median(resultsUs).toPrecision(3))
    console.log(`| ${name} | ${large ? 'yes' : 'no'} | ${medians.join(' | ')} |`)
  }
  for (const { filled } of stores) filled.close()
} finally {
  rmSync(folder, { recursive: true })
}
