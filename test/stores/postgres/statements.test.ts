// The one dialect for the whole family of engines: what may not be in a statement is not in any.
import { describe, expect, test } from 'bun:test'
import { statements } from '../../../src/stores/postgres/statements.ts'

/**
 * What one or another of PostgreSQL, Citus, CockroachDB and YugabyteDB lacks, or does otherwise.
 */
const outside: readonly [what: string, pattern: RegExp][] = [
  ['a collation', /\bcollate\b/i],
  ['every column', /select \*|\breturning \*/i],
  ['a sequence', /\bnextval|serial\b/i],
  ['a lock', /\bfor (?:update|share)\b|advisory|\block table\b/i],
  ['notifications', /\b(?:listen|notify)\b/i],
  ['JSON made by the server', /\bjsonb?_|to_json/i],
  ['a lateral join', /\blateral\b/i],
  ['a constraint by its name', /on constraint/i],
  ['several statements', /;/],
  ['a transaction', /\b(?:begin|commit|savepoint)\b/i],
  ['a volatile function', /\b(?:random|clock_timestamp|timeofday|gen_random_uuid)\s*\(/i],
  ['an order of text', /order by (?!id\b|hash\b|begun_at_ms\b)/i],
  ['a range of text', /\b(?:account|name|tag|label)\s*(?:<|>|between)/i],
  ['a pattern', /\b(?:i?like|similar to)\b|~/i],
]

describe.each(Object.entries(statements))('the statement %s', (name, { text }) => {
  test('has nothing that one of the engines lacks', () => {
    expect(outside.filter(([, pattern]) => pattern.test(text)).map(([what]) => what)).toEqual([])
  })

  test('changes a table once only', () => {
    const changed = [...text.matchAll(/\b(?:insert into|update|delete from) (\w+)/g)].map(
      ([, table]) => table,
    )
    expect(new Set(changed).size).toBe(changed.length)
  })

  test('names an account if it touches plants or batches; their count is the exception', () => {
    if (/ (?:plants|batches)\b/.test(text) && name !== 'countPlants')
      expect(text).toMatch(
        /account = (?:\$1|any\(array\[given\.account\]\))|(?:select |values \()\$1|select account, id/,
      )
  })
})

test('each statement is prepared under a name of its own', () => {
  const names = Object.values(statements).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})
