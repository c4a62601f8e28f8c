// What it costs to read a body, and what it gives. The bounds on costs are generous: before values
// and names were bounded, such bodies took hundreds of milliseconds to several seconds.
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  exactInteger,
  JsonNumber,
  JsonObject,
  type JsonValue,
  nestingMax,
  readJson,
  valuesMax,
} from '../../src/contract/json.ts'
import { newPlantShape } from '../../src/contract/plants.ts'
import { Failure } from '../../src/domain/failure.ts'

const bytesMax = 1024 * 1024

/** Reads a body as a create does: "taken", or the sentence of the refusal. */
function outcome(body: Uint8Array): string {
  try {
    newPlantShape.fromJson(readJson(body), 'The body')
    return 'taken'
  } catch (error) {
    if (error instanceof Failure && error.refusal === 'input-invalid') return error.message
    throw error
  }
}

function cpuMs(work: () => void): number {
  const begin = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(begin)
  return (user + system) / 1000
}

/** Repeats a piece up to just below the longest body. */
function filled(piece: string, before = '', after = ''): string {
  const room = bytesMax - Buffer.byteLength(before + after)
  return before + piece.repeat(Math.floor(room / Buffer.byteLength(piece))) + after
}

/** Numbered pieces up to just below the longest body. */
function numbered(piece: (number: number) => string, before: string, after: string): string {
  const length = Buffer.byteLength(piece(100_000)) + 1
  return (
    before +
    Array.from({ length: Math.floor((bytesMax - 100) / length) }, (_, number) =>
      piece(number),
    ).join(',') +
    after
  )
}

/**
 * Strings with one hash in the engine (rapidhash with a fixed seed). The first four and the last
 * four characters are a constant of the hash, which makes it multiply the characters between them
 * by zero.
 */
function colliding(number: number): string {
  return `\u0093K\u00b8\u008b${number.toString(36).padStart(4, '0')}\u00c9\u00ac.\u0096`
}

function bodyOf(names: readonly string[], value: (name: string) => string = () => '0'): Uint8Array {
  return Buffer.from(
    `{"id":1,"name":"x",${names.map((name) => `${JSON.stringify(name)}: ${value(name)}`).join(',')}}`,
  )
}

function collidingNames(first: number, count: number): string[] {
  return Array.from({ length: count }, (_, number) => colliding(first + number))
}

describe('strings whose hashes collide', () => {
  test('cost no more than others as the names of one body', () => {
    const body = bodyOf(collidingNames(0, 11_000))
    expect(body.byteLength).toBeLessThan(bytesMax)
    expect(cpuMs(() => outcome(body))).toBeLessThan(200)
  })

  test.each([
    ['names', (names: string[]) => bodyOf(names)],
    [
      'names with an escape',
      (names: string[]) => Buffer.from(bodyOf(names).toString().replaceAll('K', '\\u004b')),
    ],
    [
      'values',
      (names: string[]) => Buffer.from(`{"id":1,"name":"x","more":${JSON.stringify(names)}}`),
    ],
    [
      'values with an escape',
      (names: string[]) => Buffer.from(`[${JSON.stringify(names).replaceAll('K', '\\u004b')}]`),
    ],
  ])('cost no more than others as %s, spread over many bodies', (_name, body) => {
    const bodies = Array.from({ length: 1000 }, (_, round) => body(collidingNames(round * 50, 50)))
    expect(cpuMs(() => bodies.map(outcome))).toBeLessThan(1000)
  })
})

describe('a body of 1 MiB', () => {
  const digits = '1234567890'
  const kinds: readonly [string, string | Uint8Array][] = [
    ['numbers', filled('0,', '[', '0]')],
    ['numbers in a member', filled('0,', '{"id":1,"name":"x","more":[', '0]}')],
    ['large numbers', filled('9007199254740993,', '[', '0]')],
    ['fractions and exponents', filled('1.5e-7,', '[', '0]')],
    ['empty strings', filled('"",', '[', '0]')],
    ['short strings', filled('"ab",', '[', '0]')],
    ['different strings', numbered((number) => `"s${number}"`, '[', ']')],
    ['escaped strings', filled('"\\n",', '[', '0]')],
    ['empty arrays', filled('[],', '[', '0]')],
    ['empty objects', filled('{},', '[', '0]')],
    ['small objects', filled('{"a":1},', '[', '0]')],
    ['objects with a duplicate', filled('{"a":1,"a":1},', '[', '0]')],
    ['words', filled('true,false,null,', '[', '0]')],
    ['different names', numbered((number) => `"n${number}":0`, '{', '}')],
    ['different names, spaced', numbered((number) => `"n${number}" : 0`, '{ ', ' }')],
    ['one name again and again', filled('"a":0,', '{', '"a":0}')],
    ['names that are integers', numbered((number) => `"${number}":0`, '{', '}')],
    ['escaped names', numbered((number) => `"\\u006e${number}":0`, '{', '}')],
    ['names as many as may be', bodyText(valuesMax - 1, 1000)],
    ['more names than may be', bodyText(valuesMax + 1, 1000)],
    ['one long name', filled('n', '{"', '":0}')],
    [
      'two long names that differ at the end',
      `{"${'n'.repeat(500_000)}1":0,"${'n'.repeat(500_000)}2":0}`,
    ],
    ['a long name twice', `{"${'n'.repeat(500_000)}":0,"${'n'.repeat(500_000)}":0}`],
    ['nested arrays', '['.repeat(bytesMax / 2) + ']'.repeat(bytesMax / 2)],
    ['nested objects', filled('{"a":', '', '')],
    ['nested arrays and objects', filled('[{"a":', '', '')],
    ['nested arrays, over and over', filled(`${'['.repeat(400)}${']'.repeat(400)},`, '[', '0]')],
    ['brackets that never open', filled(']')],
    ['brackets that never close', filled('{"a":[')],
    ['a number of a million digits', filled(digits, '{"id":', ',"name":"x"}')],
    ['a number of a million zeros', filled('0', '{"id":1', ',"name":"x"}')],
    ['a fraction of a million zeros', filled('0', '{"id":0.', '1,"name":"x"}')],
    ['an exponent of a million digits', filled(digits, '{"id":1e', ',"name":"x"}')],
    ['one long string', filled('n', '{"id":1,"name":"', '"}')],
    ['one long string beyond Latin-1', filled('植', '{"id":1,"name":"', '"}')],
    ['one long string of emoji', filled('🌵', '{"id":1,"name":"', '"}')],
    ['one long string of escapes', filled('\\n', '{"id":1,"name":"', '"}')],
    ['one long string of escaped surrogates', filled('\\ud83c\\udf35', '{"id":1,"name":"', '"}')],
    ['one long string of lone surrogates', filled('\\ud800', '{"id":1,"name":"', '"}')],
    ['one long string of wrong escapes', filled('\\x', '{"id":1,"name":"', '"}')],
    ['a string that never ends', filled('n', '{"id":1,"name":"')],
    ['strings that end in a backslash', filled('\\', '{"id":1,"name":"')],
    ['only quotes', filled('"')],
    ['only backslashes', filled('\\')],
    ['only a quote and backslashes', filled('\\', '"')],
    ['only commas', filled(',', '[')],
    ['only colons', filled(':', '{"a"')],
    ['only minus signs', filled('-')],
    ['only white space', filled(' \t\r\n')],
    ['white space before the body', filled(' ', '', '{"id":1,"name":"x"}')],
    ['white space after the body', filled('\n', '{"id":1,"name":"x"}')],
    ['white space between', filled(' ', '{"id"', ':1,"name":"x"}')],
    ['byte order marks', filled('\ufeff')],
    ['zeros', new Uint8Array(bytesMax)],
    ['invalid UTF-8', new Uint8Array(bytesMax).fill(0xff)],
    [
      'UTF-8 that is invalid at its end',
      Uint8Array.from([...Buffer.from(filled('n', '"', '  ').slice(1)), 0xc3]),
    ],
  ]

  test.each(kinds)('is read in good time if it is %s', (_name, text) => {
    const body = typeof text === 'string' ? Buffer.from(text) : text
    expect(body.byteLength).toBeLessThanOrEqual(bytesMax)
    expect(body.byteLength).toBeGreaterThan(bytesMax * 0.8)
    expect(cpuMs(() => outcome(body))).toBeLessThan(200)
  })

  /** Names of the same length, which differ only at their end. */
  function bodyText(count: number, length: number): string {
    const name = (number: number): string => String(number).padStart(length, 'n')
    return `{${Array.from({ length: count }, (_, number) => `"${name(number)}":0`).join(',')}}`
  }

  test('does not stay in memory because of the short name in it', () => {
    const body = Buffer.from(filled('n', '{"id":1,"name":"short","tag":"\\u0041","more":"', '"}'))
    Bun.gc(true)
    const before = process.memoryUsage.rss()
    const plants = Array.from({ length: 200 }, () =>
      newPlantShape.fromJson(readJson(body), 'The body'),
    )
    Bun.gc(true)
    expect(plants.at(-1)).toEqual({ id: 1n, name: 'short', tag: 'A' })
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * bytesMax)
  })
})

describe('the bounds of a body', () => {
  const tooMany =
    'The body must not hold more than 1000 values, counting every member and every element.'
  const member = (more: string): Buffer => Buffer.from(`{"id":1,"name":"x","more":${more}}`)
  // The body, id, name, more and its array are five.
  const elements = (count: number): string => `[${Array(count).fill('0').join(', ')}]`

  test('let a body hold 1000 values, itself, members and elements counted, and no more', () => {
    expect(valuesMax).toBe(1000)
    expect(outcome(member(elements(996)))).toBe('taken')
    expect(outcome(member(elements(997)))).toBe(tooMany)
    const names = (count: number): string[] =>
      Array.from({ length: count }, (_, number) => `n${number}`)
    expect(outcome(bodyOf(names(997)))).toBe('taken')
    expect(outcome(bodyOf(names(998)))).toBe(tooMany)
  })

  test('let it be nested 500 levels deep and no more, in arrays and in objects', () => {
    const nested = (levels: number, open: string, close: string): string =>
      `${open.repeat(levels)}0${close.repeat(levels)}`
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      expect(outcome(member(nested(nestingMax - 1, open, close)))).toBe('taken')
      expect(outcome(member(nested(nestingMax, open, close)))).toBe(
        'The body must not be nested more than 500 levels deep.',
      )
    }
  })
})

describe('duplicate names', () => {
  const twice = (name: string): string =>
    `The body holds the member ${name} more than once in one object.`

  test('are found among few names and among many, in any place', () => {
    for (const count of [2, 3, 8, 9, 10, 100, 900]) {
      for (const [first, second] of [
        [0, 1],
        [0, count - 1],
        [count - 2, count - 1],
      ] as const) {
        const names = Array.from({ length: count }, (_, number) => `n${(number * 7919) % 10_007}`)
        expect(outcome(bodyOf(names))).toBe('taken')
        if (first !== second) names[second] = names[first] as string
        expect(outcome(bodyOf(names))).toBe(twice(`"${names[first]}"`))
      }
    }
  })

  test('are compared by their meaning, not by their spelling', () => {
    expect(outcome(Buffer.from('{"a":1,"\\u0061":1}'))).toBe(twice('"a"'))
    expect(outcome(Buffer.from('{"\\ud83c\\udf35":1,"🌵":1}'))).toBe(twice('"🌵"'))
    expect(outcome(Buffer.from('{"":1,"":1}'))).toBe(twice('""'))
    expect(outcome(Buffer.from('{"\\\\u0061":1,"a":1}'))).toBe('id is missing.')
  })
})

describe('the digits of a number', () => {
  /** The value by arithmetic on big integers, from the parts that the number is made of. */
  function oracle(
    negative: boolean,
    whole: string,
    fraction: string,
    exponent: number,
  ): bigint | undefined {
    const scaled = BigInt(whole + fraction) * (negative ? -1n : 1n)
    const shift = exponent - fraction.length
    if (shift >= 0) return scaled * 10n ** BigInt(shift)
    const divisor = 10n ** BigInt(-shift)
    return scaled % divisor === 0n ? scaled / divisor : undefined
  }

  test('give the exact integer or none, in ten thousand spellings', () => {
    // A generator of Park and Miller, so that a failure can be repeated.
    let state = 20_261_121
    const below = (bound: number): number => {
      state = (state * 48_271) % 0x7fffffff
      return state % bound
    }
    const someDigits = (count: number): string =>
      Array.from({ length: count }, () => (below(3) === 0 ? 0 : below(10))).join('')
    let integers = 0
    for (let round = 0; round < 10_000; round += 1) {
      const whole = someDigits(1 + below(22)).replace(/^0+(?=\d)/, '')
      const fraction = below(2) === 0 ? '' : someDigits(1 + below(12))
      const exponent = below(2) === 0 ? 0 : below(50) - 25
      const sign = below(2) === 0 ? '-' : ''
      const source = `${sign}${whole}${fraction && `.${fraction}`}${exponent === 0 ? '' : `e${exponent}`}`
      const read = readJson(Buffer.from(source)) as JsonNumber
      expect(read.source).toBe(source)
      const exact = oracle(sign === '-', whole, fraction, exponent)
      const expected =
        exact !== undefined && exact < 10n ** 19n && exact > -(10n ** 19n) ? exact : undefined
      if (expected !== undefined) integers += 1
      expect(exactInteger(source), source).toBe(expected as bigint)
    }
    expect(integers).toBeGreaterThan(1000)
  })
})

// A public suite, if a variable names its folder test_parsing: github.com/nst/JSONTestSuite.
const suite = process.env['PLANTS_JSON_SUITE']

describe.skipIf(suite === undefined)('the public suite of JSON files', () => {
  const duplicates = ['y_object_duplicated_key.json', 'y_object_duplicated_key_and_value.json']
  const files =
    suite === undefined ? [] : readdirSync(suite).filter((file) => file.endsWith('.json'))

  test('is there', () => expect(files.length).toBeGreaterThan(300))

  test.each(files)('is read as it should be: %s', (file) => {
    const body = readFileSync(join(suite as string, file))
    const refused = refusal(body)
    if (duplicates.includes(file)) expect(refused).toContain('more than once')
    else if (file.startsWith('y_')) expect(refused).toBeUndefined()
    else if (file.startsWith('n_')) expect(refused).toBeString()
  })
})

function refusal(body: Uint8Array): string | undefined {
  try {
    readJson(body)
    return undefined
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}

/** The value that JSON.parse would give, made from the value of `readJson`. */
function plain(json: JsonValue): unknown {
  if (json instanceof JsonNumber) return Number(json.source)
  if (json instanceof JsonObject) return 'an object'
  return typeof json === 'object' && json !== null ? json.map(plain) : json
}

test('a value is what JSON.parse says it is', () => {
  for (const text of [
    'null',
    'true',
    ' false ',
    '"\\u00e9\\n\\/\\"\\\\"',
    '""',
    '"🌵"',
    '-0.5e3',
    '[]',
    '[ ]',
    '[1, [2,[ "a" ] ] ,null]',
  ])
    expect(plain(readJson(Buffer.from(text)))).toEqual(JSON.parse(text))
})
