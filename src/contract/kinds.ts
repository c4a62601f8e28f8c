// The kinds of value in the contract. Each declaration gives three things: a TypeScript type, a
// parser, and the JSON Schema (2020-12) that the OpenAPI document publishes.
import { exactInteger, JsonNumber, JsonObject, type JsonValue, refuseInput } from './json.ts'

/** A JSON Schema as it is published. */
type PublishedSchema = Readonly<Record<string, unknown>>

/** A value that travels in a JSON body. `name` is what a refusal calls it. */
export interface Member<Value> {
  readonly published: PublishedSchema
  readonly fromJson: (json: JsonValue, name: string) => Value
}

/** A value that travels as text: in a path, a query or a header. */
export interface Parameter<Value> {
  readonly published: PublishedSchema
  readonly fromText: (text: string, name: string) => Value
}

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n

/**
 * A signed 64-bit integer, kept exactly as a bigint.
 *
 * A path or query takes one spelling of a number: no fraction, no exponent, no leading zero.
 *
 *     int64({ examples: [7] }).fromText('7', 'id')      // 7n
 *     int64({ examples: [7] }).fromText('7.0', 'id')    // refused: a path takes digits alone
 */
export function int64(annotations: PublishedSchema): Member<bigint> & Parameter<bigint> {
  const checked = (value: bigint | undefined, name: string, spelling: string): bigint => {
    if (value !== undefined && value >= int64Min && value <= int64Max) return value
    return refuseInput(`${name} must be an integer between ${int64Min} and ${int64Max}${spelling}.`)
  }
  return {
    // A reader that uses doubles takes the upper bound for 2^63. An exclusive bound of 2^63 would be
    // exact for these, but generators of code for 64-bit integers cannot read it.
    published: {
      type: 'integer',
      format: 'int64',
      minimum: int64Min,
      maximum: int64Max,
      ...annotations,
    },
    fromJson: (json, name) =>
      json instanceof JsonNumber
        ? checked(exactInteger(json.source), name, '')
        : refuseKind(name, 'a number', json),
    fromText: (text, name) => {
      const value = /^-?(?:0|[1-9][0-9]{0,18})$/.test(text) ? BigInt(text) : undefined
      return checked(value, name, ', in plain decimal digits')
    },
  }
}

/**
 * A number of things: an integer from 0 to 2^31 - 1.
 *
 *     count({ examples: [20] }).fromText('20', 'limit') // 20
 */
export function count(annotations: PublishedSchema): Parameter<number> {
  const max = 2 ** 31 - 1
  return {
    published: { type: 'integer', format: 'int32', minimum: 0, maximum: max, ...annotations },
    fromText: (text, name) => {
      const value = /^(?:0|[1-9][0-9]{0,9})$/.test(text) ? Number(text) : Number.NaN
      return value <= max
        ? value
        : refuseInput(`${name} must be an integer between 0 and ${max}, in plain decimal digits.`)
    },
  }
}

/**
 * Any Unicode text without U+0000, which PostgreSQL cannot keep, and without lone surrogates, which
 * UTF-8 cannot hold.
 *
 *     text({ examples: ['Monstera'] }).fromJson('Monstera', 'name')
 */
export function text(annotations: PublishedSchema): Member<string> {
  return {
    // Surrogates are not in the pattern: readers of UTF-16 would refuse every emoji.
    published: { type: 'string', pattern: '^[^\\x00]*$', ...annotations },
    fromJson: (json, name) => {
      if (typeof json !== 'string') return refuseKind(name, 'a string', json)
      if (json.includes('\0')) return refuseInput(`${name} must not contain the character U+0000.`)
      if (!json.isWellFormed()) return refuseInput(`${name} must not contain a lone surrogate.`)
      return json
    },
  }
}

/**
 * Text in a header or query that follows a pattern. `form` completes the sentence "NAME must be …".
 *
 *     formatted(/^[a-z]{2}$/, 'two letters', (value) => value, {}).fromText('de', 'lang')
 */
export function formatted<Value>(
  pattern: RegExp,
  form: string,
  read: (text: string) => Value,
  annotations: PublishedSchema,
): Parameter<Value> {
  return {
    published: { type: 'string', pattern: pattern.source, ...annotations },
    fromText: (value, name) =>
      pattern.test(value) ? read(value) : refuseInput(`${name} must be ${form}.`),
  }
}

/**
 * Text that is taken as it comes.
 *
 *     anyText.fromText('W/"5f2c"', 'If-None-Match')
 */
export const anyText: Parameter<string> = {
  published: { type: 'string' },
  fromText: (text) => text,
}

type ObjectOf<Required, Optional> = Required & {
  readonly [Name in keyof Optional]: Optional[Name] | null
}

/**
 * An object with these members. An optional one is null if it is left out; an explicit null is
 * refused, because it is not the same. Further members are ignored: the published schema is open.
 *
 *     object({ name: text({}) }, { tag: text({}) }, {}) // { name: string; tag: string | null }
 */
export function object<Required extends object, Optional extends object>(
  required: { readonly [Name in keyof Required]: Member<Required[Name]> },
  optional: { readonly [Name in keyof Optional]: Member<Optional[Name]> },
  annotations: PublishedSchema,
): Member<ObjectOf<Required, Optional>> {
  const members: [string, Member<unknown>][] = Object.entries({ ...required, ...optional })
  return {
    published: {
      type: 'object',
      required: Object.keys(required),
      properties: Object.fromEntries(members.map(([name, { published }]) => [name, published])),
      ...annotations,
    },
    fromJson: (json, name) => {
      if (!(json instanceof JsonObject)) return refuseKind(name, 'a JSON object', json)
      const read: Record<string, unknown> = {}
      for (const [key, member] of members) {
        const value = json.get(key)
        if (value !== undefined) read[key] = member.fromJson(value, key)
        else if (key in optional) read[key] = null
        else refuseInput(`${key} is missing.`)
      }
      return read as ObjectOf<Required, Optional>
    },
  }
}

function refuseKind(name: string, wanted: string, json: JsonValue): never {
  let kind = `a ${typeof json}`
  if (json === null) kind = 'null'
  else if (json instanceof JsonNumber) kind = 'a number'
  else if (json instanceof JsonObject) kind = 'an object'
  else if (typeof json === 'object') kind = 'an array'
  return refuseInput(`${name} must be ${wanted}, not ${kind}.`)
}
