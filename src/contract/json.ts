// Reads JSON text (RFC 8259) without losing anything. JSON.parse does the reading; this adds the
// two things that it hides: the exact digits of a number, and a member name that appears twice.
import { Failure } from '../domain/failure.ts'
import { withoutTokens } from '../domain/token.ts'

/** A JSON number as it was written, because a JavaScript number would round a large one. */
export class JsonNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/** What `readJson` gives: the values of JSON.parse, with a JsonNumber for a number that might have lost digits. */
export type JsonValue = null | boolean | number | string | JsonNumber | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [name: string]: JsonValue
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads a body: UTF-8, at most one leading byte order mark, one JSON value without duplicate names. */
export function readJson(body: Uint8Array): JsonValue {
  const text = decode(body)
  return withoutSyntaxError(text, () => {
    const plain = JSON.parse(text)
    // Deep nesting costs JSON.stringify seconds, so it is refused before.
    if (text.length > 2 * nestingMax) refuseDeepNesting(text)
    // Text that comes out as it went in has lost nothing: every digit and every name is in the value.
    if (JSON.stringify(plain) === text) return plain
    const value = JSON.parse(text, keepDigits)
    refuseDuplicateNames(text)
    return value
  })
}

/** The digits of a number as they were written, or undefined for any other value. */
export function numberSource(json: JsonValue): string | undefined {
  if (typeof json === 'number') return String(json)
  return json instanceof JsonNumber ? json.source : undefined
}

function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new Failure('input-invalid', 'The body must be valid UTF-8.')
  }
}

function withoutSyntaxError(text: string, read: () => JsonValue): JsonValue {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) throw error
    // JSON.parse itself gives up far beyond that.
    if (error instanceof RangeError) throw nestedTooDeeply()
    const empty = text.trim() === ''
    throw new Failure('input-invalid', empty ? 'The body is empty; send a JSON object.' : 'The body must be valid JSON.')
  }
}

function keepDigits(_name: string, value: JsonValue | number, context?: { source?: string }): JsonValue {
  return typeof value === 'number' ? new JsonNumber(context?.source ?? String(value)) : value
}

/** Deepest nesting of a body. No plant needs more than one level; others may be in members that are ignored. */
export const nestingMax = 500

/** Takes valid JSON, like `refuseDuplicateNames`. */
function refuseDeepNesting(text: string): void {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at)
    if (character === 0x22) at = closingQuote(text, at + 1)
    else if (character === 0x7b || character === 0x5b) depth += 1
    else if (character === 0x7d || character === 0x5d) depth -= 1
    if (depth > nestingMax) throw nestedTooDeeply()
  }
}

function nestedTooDeeply(): Failure {
  return new Failure('input-invalid', `The body must not be nested more than ${nestingMax} levels deep.`)
}

/** Longest member name that a refusal repeats, in UTF-16 code units. */
const quotedNameMax = 64

/**
 * Refuses a member name that appears twice in one object, at any depth. Takes valid JSON, so it
 * need only follow strings and brackets.
 */
function refuseDuplicateNames(text: string): void {
  const open: (Set<string> | undefined)[] = []
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at)
    if (character === 0x7b) open.push(new Set())
    else if (character === 0x5b) open.push(undefined)
    else if (character === 0x7d || character === 0x5d) open.pop()
    else if (character === 0x22) {
      const start = at
      at = closingQuote(text, start + 1)
      const names = open.at(-1)
      if (names === undefined || !colonFollows(text, at + 1)) continue
      const name = JSON.parse(text.slice(start, at + 1)) as string
      if (names.has(name)) throw new Failure('input-invalid', duplicateMessage(name))
      names.add(name)
    }
  }
}

function duplicateMessage(name: string): string {
  return `The body holds the member ${JSON.stringify(withoutTokens(name).slice(0, quotedNameMax))} more than once in one object.`
}

function closingQuote(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) !== 0x22) at += text.charCodeAt(at) === 0x5c ? 2 : 1
  return at
}

function colonFollows(text: string, from: number): boolean {
  let at = from
  while (text.charCodeAt(at) <= 0x20) at += 1
  return text.charCodeAt(at) === 0x3a
}

/** Digits of the largest 64-bit integer: what has more is out of every range that matters here. */
const integerDigitsMax = 19

/**
 * The value of a JSON number where it is an integer of at most 19 digits, however it is spelled
 * (`7`, `7.0`, `70e-1`), else undefined. Exact, and linear in the length of the text.
 */
export function exactInteger(source: string): bigint | undefined {
  if (/^-?\d{1,19}$/.test(source)) return BigInt(source)
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  const digits = whole + fraction
  let first = 0
  while (digits.charAt(first) === '0') first += 1
  if (first === digits.length) return 0n
  let end = digits.length
  while (digits.charAt(end - 1) === '0') end -= 1
  const zeros = Number(exponent) - fraction.length + digits.length - end
  if (zeros < 0 || end - first + zeros > integerDigitsMax) return undefined
  return BigInt(sign + digits.slice(first, end) + '0'.repeat(zeros))
}
