// Reads JSON text (RFC 8259) in one pass: exact digits, no name twice, bounded before it is built.
// JSON.parse would put each name and short string into one table of the engine, whose hash has no
// seed. Names that collide in it slow down all later requests, even if each body holds only a few.
import { Failure } from '../domain/failure.ts'
import { withoutTokens } from '../domain/token.ts'

/** A JSON number as it was written, because a JavaScript number would round a large one. */
export class JsonNumber {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/**
 * The members of an object, as two lists: properties of a JavaScript object would be in the
 * engine's table.
 */
export class JsonObject {
  readonly #names: readonly string[]
  readonly #values: readonly JsonValue[]

  constructor(names: readonly string[], values: readonly JsonValue[]) {
    this.#names = names
    this.#values = values
  }

  /** The value of a member, or undefined if there is no such member. */
  get(name: string): JsonValue | undefined {
    return this.#values[this.#names.indexOf(name)]
  }
}

export type JsonValue = null | boolean | string | JsonNumber | JsonObject | readonly JsonValue[]

/** Most values in a body: the body itself, the value of each member and each element. */
export const valuesMax = 1000

/**
 * Deepest nesting of a body. A plant needs one level only; the others are for members that are
 * ignored.
 */
export const nestingMax = 500

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a body: UTF-8, at most one leading byte order mark, one JSON value within the bounds above.
 */
export function readJson(body: Uint8Array): JsonValue {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return refuseInput('The body must be valid UTF-8.')
  }
  return new Reader(text).read()
}

/** Refuses what a caller sent. `message` is one sentence that names what is wrong. */
export function refuseInput(message: string): never {
  throw new Failure('input-invalid', message)
}

function refuseSyntax(): never {
  return refuseInput('The body must be valid JSON.')
}

/** The codes of the characters that JSON is made of. */
const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  array: 0x5b,
  backslash: 0x5c,
  arrayEnd: 0x5d,
  false: 0x66,
  null: 0x6e,
  true: 0x74,
  object: 0x7b,
  objectEnd: 0x7d,
} as const
const numberForm = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** Longest text that a string cut from it may keep alive, in UTF-16 code units. */
const sharedTextMax = 1024

/** One pass over a text. Each method goes on where the one before it stopped. */
class Reader {
  readonly #text: string
  #at = 0
  #values = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): JsonValue {
    if (Number.isNaN(this.#next())) refuseInput('The body is empty; send a JSON object.')
    const value = this.#value(1)
    return Number.isNaN(this.#next()) ? value : refuseSyntax()
  }

  /** Skips white space and returns the code of the next character: NaN at the end. */
  #next(): number {
    let character = this.#text.charCodeAt(this.#at)
    while (character === 0x20 || character === 0x0a || character === 0x0d || character === 0x09) {
      this.#at += 1
      character = this.#text.charCodeAt(this.#at)
    }
    return character
  }

  #takes(character: number): boolean {
    // The first look is faster, and mostly there is no white space to skip.
    if (this.#text.charCodeAt(this.#at) !== character && this.#next() !== character) return false
    this.#at += 1
    return true
  }

  #value(depth: number): JsonValue {
    this.#values += 1
    if (this.#values > valuesMax)
      refuseInput(
        `The body must not hold more than ${valuesMax} values, counting every member and every element.`,
      )
    switch (this.#text.charCodeAt(this.#at)) {
      case code.quote:
        // A string cut from a text keeps the whole text in memory; a copy does not.
        return this.#text.length > sharedTextMax ? ['', this.#string()].join('') : this.#string()
      case code.object:
        return this.#object(depth)
      case code.array:
        return this.#elements(depth, code.arrayEnd)
      case code.true:
        return this.#word('true', true)
      case code.false:
        return this.#word('false', false)
      case code.null:
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(depth: number): JsonObject {
    const names: string[] = []
    const values = this.#elements(depth, code.objectEnd, names)
    refuseDuplicates(names)
    return new JsonObject(names, values)
  }

  /** Reads the values between two brackets. If `names` is given, reads a name before each value. */
  #elements(depth: number, end: number, names?: string[]): JsonValue[] {
    if (depth > nestingMax)
      refuseInput(`The body must not be nested more than ${nestingMax} levels deep.`)
    const values: JsonValue[] = []
    this.#at += 1
    if (this.#takes(end)) return values
    do {
      this.#next()
      if (names !== undefined) names.push(this.#name())
      values.push(this.#value(depth + 1))
    } while (this.#takes(code.comma))
    return this.#takes(end) ? values : refuseSyntax()
  }

  #name(): string {
    const name = this.#text.charCodeAt(this.#at) === code.quote ? this.#string() : refuseSyntax()
    if (!this.#takes(code.colon)) refuseSyntax()
    this.#next()
    return name
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) refuseSyntax()
    this.#at += word.length
    return value
  }

  #number(): JsonNumber {
    const start = this.#at
    numberForm.lastIndex = start
    if (!numberForm.test(this.#text)) refuseSyntax()
    this.#at = numberForm.lastIndex
    return new JsonNumber(this.#text.slice(start, this.#at))
  }

  #string(): string {
    const text = this.#text
    const start = this.#at + 1
    let end = start
    let escaped = false
    for (
      let character = text.charCodeAt(end);
      character !== code.quote;
      character = text.charCodeAt(end)
    ) {
      if (character === code.backslash) {
        escaped = true
        end += 1
      }
      // At the end of the text the code is NaN, which this refuses too.
      else if (!(character >= 0x20)) refuseSyntax()
      end += 1
    }
    this.#at = end + 1
    return escaped ? unescaped(text.slice(start, end)) : text.slice(start, end)
  }
}

/** Makes a string too long for the engine's table, which takes only short ones. */
const padding = ' '.repeat(64)

function unescaped(text: string): string {
  try {
    return (JSON.parse(`"${padding}${text}"`) as string).slice(padding.length)
  } catch {
    return refuseSyntax()
  }
}

function refuseDuplicates(names: readonly string[]): void {
  let twice: string | undefined
  if (names.length > 8) {
    const sorted = names.toSorted()
    twice = sorted.find((name, at) => name === sorted[at + 1])
  } else {
    // A few names are compared faster each with each than sorted.
    for (let at = 1; at < names.length && twice === undefined; at += 1)
      if (names.indexOf(names[at] as string) < at) twice = names[at]
  }
  if (twice === undefined) return
  const quoted = JSON.stringify(withoutTokens(twice).slice(0, 64))
  refuseInput(`The body holds the member ${quoted} more than once in one object.`)
}

/**
 * The value of a JSON number if it is an integer of at most 19 digits, however it is spelled
 * (`7`, `7.0`, `70e-1`), else undefined. Exact, and linear in the length of the text. A longer
 * integer is out of every range that matters here: 19 digits hold the largest of 64 bits.
 */
export function exactInteger(source: string): bigint | undefined {
  if (/^-?\d{1,19}$/.test(source)) return BigInt(source)
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  const digits = whole + fraction
  let first = 0
  while (digits.charAt(first) === '0') first += 1
  if (first === digits.length) return 0n
  let end = digits.length
  while (digits.charAt(end - 1) === '0') end -= 1
  const zeros = Number(exponent) - fraction.length + digits.length - end
  if (zeros < 0 || end - first + zeros > 19) return undefined
  return BigInt(sign + digits.slice(first, end) + '0'.repeat(zeros))
}
