// The kinds of value in the contract. Each declaration gives three things: a TypeScript type, a
// parser, and the JSON Schema (2020-12) that the OpenAPI document publishes.
import { Failure } from '../domain/failure.ts'
import { exactInteger, JsonNumber, JsonObject, type JsonValue } from './json.ts'

/** A JSON Schema as it is published. */
export type PublishedSchema = Readonly<Record<string, unknown>>

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

/** The TypeScript type that a declaration reads. */
export type ValueOf<Declared> =
  Declared extends Member<infer Value>
    ? Value
    : Declared extends Parameter<infer Value>
      ? Value
      : never

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const int32Max = 2 ** 31 - 1

/** A path or query takes one spelling of a number: no fraction, no exponent, no leading zero. */
const inDigits = ', in plain decimal digits'

/**
 * A signed 64-bit integer, kept exactly as a bigint.
 *
 *     int64({ examples: [7] }).fromText('7', 'id')      // 7n
 *     int64({ examples: [7] }).fromText('7.0', 'id')    // refused: a path takes digits alone
 */
export function int64(annotations: PublishedSchema): Member<bigint> & Parameter<bigint> {
  const checked = (value: bigint | undefined, name: string, spelling = ''): bigint => {
    if (value !== undefined && value >= int64Min && value <= int64Max) return value
    return refuse(`${name} must be an integer between ${int64Min} and ${int64Max}${spelling}.`)
  }
  return {
    // The upper bound is exclusive because many readers use doubles, which can hold 2^63 but not
    // 2^63 - 1.
    published: {
      type: 'integer',
      format: 'int64',
      minimum: int64Min,
      exclusiveMaximum: int64Max + 1n,
      ...annotations,
    },
    fromJson: (json, name) =>
      json instanceof JsonNumber
        ? checked(exactInteger(json.source), name)
        : refuseKind(name, 'a number', json),
    fromText: (text, name) =>
      checked(/^-?(?:0|[1-9][0-9]{0,18})$/.test(text) ? BigInt(text) : undefined, name, inDigits),
  }
}

/**
 * A number of things: an integer from 0 to 2^31 - 1.
 *
 *     count({ examples: [20] }).fromText('20', 'limit') // 20
 */
export function count(annotations: PublishedSchema): Parameter<number> {
  return {
    published: { type: 'integer', format: 'int32', minimum: 0, maximum: int32Max, ...annotations },
    fromText: (text, name) => {
      const value = /^(?:0|[1-9][0-9]{0,9})$/.test(text) ? Number(text) : Number.NaN
      return value <= int32Max
        ? value
        : refuse(`${name} must be an integer between 0 and ${int32Max}${inDigits}.`)
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
    published: { type: 'string', pattern: '^[^\\u0000\\uD800-\\uDFFF]*$', ...annotations },
    fromJson: (json, name) => {
      if (typeof json !== 'string') return refuseKind(name, 'a string', json)
      if (json.includes('\0')) return refuse(`${name} must not contain the character U+0000.`)
      if (!json.isWellFormed()) return refuse(`${name} must not contain a lone surrogate.`)
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
      pattern.test(value) ? read(value) : refuse(`${name} must be ${form}.`),
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

/** A member that may be left out. */
export interface Optional<Value> {
  readonly optional: Member<Value>
}

/**
 * A member that may be left out, and is then null. An explicit null is refused: it is not the same
 * as leaving the member out.
 *
 *     object({ name: text({}), tag: optional(text({})) }, {}) // { name: string; tag: string | null }
 */
export function optional<Value>(member: Member<Value>): Optional<Value> {
  return { optional: member }
}

type Members = Readonly<Record<string, Member<unknown> | Optional<unknown>>>
type ObjectOf<Of extends Members> = {
  readonly [Name in keyof Of]: Of[Name] extends Optional<infer Value>
    ? Value | null
    : ValueOf<Of[Name]>
}

/**
 * An object with these members. Others are ignored: the published schema is open.
 *
 *     object({ id: int64({}), name: text({}) }, { title: 'NewPlant' })
 */
export function object<Of extends Members>(
  members: Of,
  annotations: PublishedSchema,
): Member<ObjectOf<Of>> {
  const entries = Object.entries(members)
  const published = entries.map(([name, member]) => [name, required(member).published] as const)
  return {
    published: {
      type: 'object',
      required: entries.filter(([, member]) => !('optional' in member)).map(([name]) => name),
      properties: Object.fromEntries(published),
      ...annotations,
    },
    fromJson: (json, name) => {
      const given = json instanceof JsonObject ? json : refuseKind(name, 'a JSON object', json)
      const read: Record<string, unknown> = {}
      for (const [key, member] of entries) read[key] = readMember(given, key, member)
      return read as ObjectOf<Of>
    },
  }
}

function required(member: Member<unknown> | Optional<unknown>): Member<unknown> {
  return 'optional' in member ? member.optional : member
}

function readMember(
  given: JsonObject,
  name: string,
  member: Member<unknown> | Optional<unknown>,
): unknown {
  const json = given.get(name)
  if (json !== undefined) return required(member).fromJson(json, name)
  return 'optional' in member ? null : refuse(`${name} is missing.`)
}

function refuseKind(name: string, wanted: string, given: JsonValue): never {
  return refuse(`${name} must be ${wanted}, not ${kindOf(given)}.`)
}

function kindOf(json: JsonValue): string {
  if (json === null) return 'null'
  if (json instanceof JsonNumber) return 'a number'
  if (json instanceof JsonObject) return 'an object'
  return typeof json === 'object' ? 'an array' : `a ${typeof json}`
}

function refuse(message: string): never {
  throw new Failure('input-invalid', message)
}
