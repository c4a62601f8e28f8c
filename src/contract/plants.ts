// The shapes of the specification: Plant, NewPlant, Error, and a cursor.
import { type IdentifiedPlant, type Plant, textLength } from '../domain/plant.ts'
import { nestingMax, valuesMax } from './json.ts'
import { formatted, int64, object, text } from './kinds.ts'

const name = text({
  description:
    'Name of the plant. Any Unicode text but U+0000 and lone surrogates. Kept as it is sent: nothing is trimmed or normalised.',
  examples: ['Monstera deliciosa'],
})
const tag = text({
  description: 'Type of the plant. Text as in the name. Leave it out when there is none.',
  examples: ['indoor'],
})

export const plantId = int64({
  description: "Identification number of the plant. Unique within the caller's account.",
  examples: [7],
})

export const plantShape = object(
  { name },
  { tag },
  { title: 'Plant', examples: [{ name: 'Monstera deliciosa', tag: 'indoor' }] },
)

export const newPlantShape = object(
  { id: plantId, name },
  { tag },
  {
    title: 'NewPlant',
    description: `Members other than these are ignored. A body holds at most ${valuesMax} values, counting itself, the value of every member and every element, and is nested at most ${nestingMax} levels deep. A member name that appears twice in one object is refused.`,
    examples: [{ id: 7, name: 'Monstera deliciosa', tag: 'indoor' }],
  },
)

/** A Plant as it travels: `tag` is left out if there is none. */
export function plantJson(plant: Plant): string {
  return JSON.stringify(wirePlant(plant))
}

/** A NewPlant as it travels, which is the only shape with an id. */
export function newPlantJson(plant: IdentifiedPlant): string {
  return `{"id":${plant.id},${plantJson(plant).slice(1)}`
}

/** Plants as they travel, separated by commas, without the brackets around them. */
export function plantsJson(plants: readonly Plant[]): string {
  return JSON.stringify(plants.map(wirePlant)).slice(1, -1)
}

/** Most text in one piece of a long list, in UTF-16 code units. As JSON each may be six bytes. */
export const pieceTextMax = 16 * 1024

/**
 * The text of `plantsJson` in pieces. No piece holds much more than `pieceTextMax`, even if a name
 * is longer.
 */
export function* plantsJsonPieces(plants: readonly Plant[]): Generator<string> {
  let separator = ''
  let piece: Plant[] = []
  let text = 0
  for (const plant of plants) {
    const plantText = textLength(plant)
    if (piece.length > 0 && text + plantText > pieceTextMax) {
      yield separator + plantsJson(piece)
      separator = ','
      piece = []
      text = 0
    }
    if (plantText > pieceTextMax) {
      let before = `${separator}{`
      for (const [member, value] of Object.entries(wirePlant(plant))) {
        yield `${before}"${member}":"`
        yield* quotedPieces(value)
        before = '",'
      }
      yield '"}'
      separator = ','
    } else {
      piece.push(plant)
      text += plantText
    }
  }
  if (piece.length > 0) yield separator + plantsJson(piece)
}

/**
 * The inside of a JSON string. No piece ends within a surrogate pair, which JSON would then escape.
 */
function* quotedPieces(text: string): Generator<string> {
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = start + pieceTextMax
    const code = text.charCodeAt(end - 1)
    if (end < text.length && code >= 0xd800 && code <= 0xdbff) end -= 1
    yield JSON.stringify(text.slice(start, end)).slice(1, -1)
  }
}

function wirePlant({ name, tag }: Plant): { name: string; tag?: string } {
  return tag === null ? { name } : { name, tag }
}

/** Longest body of a request, in bytes. */
export const bodyBytesMax = 1024 * 1024

/** The body of every refusal. */
export function errorJson(status: number, message: string): string {
  return JSON.stringify({ error: status, message })
}

/**
 * An id as eight bytes in base64url: eleven characters, and the last one carries four bits only.
 */
export const cursor = formatted(
  /^[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$/,
  'a cursor from a Link header of this service',
  (value) => Buffer.from(value, 'base64url').readBigInt64BE(),
  {
    description: 'Where to go on: the cursor in the URL of a Link header with rel="next".',
    examples: ['AAAAAAAAAAc'],
  },
)

export function cursorText(id: bigint): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(id)
  return bytes.toString('base64url')
}
