// Plants as lines of a file: NDJSON, a NewPlant of the contract on each line, and CSV (RFC 4180) with
// the header id,name,tag. Both keep every id and every text exactly. In CSV a plant without a tag
// has nothing there, and one with an empty tag has two quotes.
import { JsonNumber, JsonObject, readJson, refuseInput } from '../contract/json.ts'
import { bodyBytesMax, newPlantJson, newPlantShape, plantId } from '../contract/plants.ts'
import { Failure } from '../domain/failure.ts'
import type { IdentifiedPlant } from '../domain/plant.ts'
import { Refused } from '../refused.ts'

export const plantFormats = ['ndjson', 'csv'] as const
export type PlantFormat = (typeof plantFormats)[number]

/** Plants as they are written, each with the end of its line. */
export function plantsText(plants: readonly IdentifiedPlant[], format: PlantFormat): string {
  return plants
    .map((plant) => (format === 'csv' ? csvLine(plant) : `${newPlantJson(plant)}\n`))
    .join('')
}

export const csvHeader = 'id,name,tag\r\n'

function csvLine({ id, name, tag }: IdentifiedPlant): string {
  return `${id},${csvField(name)},${tag === null ? '' : tag === '' ? '""' : csvField(tag)}\r\n`
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** What a file says at a line, counted from 1. */
export type Read = { readonly line: number } & (
  | { readonly plant: IdentifiedPlant }
  | {
      /** Why it is no plant: a sentence. */
      readonly problem: string
    }
)

/**
 * Most bytes of a plant as JSON: those of a body, which may spell the id shorter than it is written
 * here, such as 1e18. No plant is longer in CSV.
 */
const lineBytesMax = bodyBytesMax + 20

/** What a chunk of a file completed. */
export interface Part {
  readonly plants: readonly Read[]
  /** The length of the chunk. */
  readonly bytes: number
}

/**
 * Reads plants from a file as it comes in. Empty lines are left out. Rejects with Refused if a CSV
 * file does not begin with its header.
 */
export async function* readPlants(
  file: AsyncIterable<Buffer>,
  format: PlantFormat,
): AsyncGenerator<Part> {
  let awaitsHeader = format === 'csv'
  for await (const { lines, bytes } of linesOf(file, format)) {
    const plants: Read[] = []
    for (const { line, content } of lines) {
      if (awaitsHeader) {
        if (!headerForm.test(String(content))) break
        awaitsHeader = false
        continue
      }
      try {
        plants.push({ line, plant: plantOf(content, format) })
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        plants.push({ line, problem: error.message })
      }
    }
    if (awaitsHeader && lines.length > 0) break
    yield { plants, bytes }
  }
  if (awaitsHeader)
    throw new Refused('A file in CSV must begin with the line id,name,tag; nothing was imported.')
}

/** Spreadsheets put a byte order mark before it. */
const headerForm = /^\ufeff?(?:id,name,tag|"id","name","tag")$/

/** Throws a Failure with a sentence of the contract. */
function plantOf(content: Buffer | undefined, format: PlantFormat): IdentifiedPlant {
  if (content === undefined)
    return refuseInput(
      `The line must not exceed ${bodyBytesMax} bytes${format === 'csv' ? '; is a quote left open?' : '.'}`,
    )
  const json = format === 'csv' ? jsonOf(csvFields(content)) : readJson(content)
  const plant = newPlantShape.fromJson(json, 'The line')
  if (Buffer.byteLength(newPlantJson(plant)) > lineBytesMax)
    refuseInput(`The plant must not exceed ${bodyBytesMax} bytes as JSON.`)
  return plant
}

interface CsvField {
  readonly text: string
  readonly isQuoted: boolean
}

function jsonOf(fields: readonly CsvField[]): JsonObject {
  const [id, name, tag] = fields
  if (id === undefined || name === undefined || tag === undefined || fields.length > 3)
    return refuseInput(
      `The line must have the three fields id, name and tag, not ${fields.length}.`,
    )
  const number = new JsonNumber(String(plantId.fromText(id.text, 'id')))
  return tag.text === '' && !tag.isQuoted
    ? new JsonObject(['id', 'name'], [number, name.text])
    : new JsonObject(['id', 'name', 'tag'], [number, name.text, tag.text])
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function csvFields(bytes: Buffer): readonly CsvField[] {
  let line: string
  try {
    line = utf8.decode(bytes)
  } catch {
    return refuseInput('The line must be valid UTF-8.')
  }
  const lines = line.split('\n').length
  const refuseSyntax = (): never =>
    refuseInput(
      `The line must be CSV as in RFC 4180: a field that holds a quote stands in quotes, and its quotes are doubled.${lines === 1 ? '' : ` A quote that is left open has taken ${lines - 1} further lines with it.`}`,
    )
  const fields: CsvField[] = []
  for (let at = 0; ; at += 1) {
    const isQuoted = line[at] === '"'
    let end: number
    if (isQuoted) {
      end = line.indexOf('"', at + 1)
      while (end !== -1 && line[end + 1] === '"') end = line.indexOf('"', end + 2)
      if (end === -1) return refuseSyntax()
      fields.push({ text: line.slice(at + 1, end).replaceAll('""', '"'), isQuoted })
      end += 1
    } else {
      end = line.indexOf(',', at)
      if (end === -1) end = line.length
      const text = line.slice(at, end)
      if (text.includes('"')) return refuseSyntax()
      fields.push({ text, isQuoted })
    }
    if (end === line.length) return fields
    if (line[end] !== ',') return refuseSyntax()
    at = end
  }
}

interface Line {
  /** The number of its first line, if line ends stand in its quotes. */
  readonly line: number
  /** Without its end. Undefined if it is too long. */
  readonly content: Buffer | undefined
}

/** The lines of a file. In CSV a line goes on as long as a quote is open. */
async function* linesOf(
  file: AsyncIterable<Buffer>,
  format: PlantFormat,
): AsyncGenerator<{ readonly lines: readonly Line[]; readonly bytes: number }> {
  let pieces: Buffer[] = []
  let length = 0
  let first = 1
  let ends = 0
  let state: CsvState = 'field'
  const take = (): Line => {
    const content = length > lineBytesMax ? undefined : withoutEnd(Buffer.concat(pieces))
    const line = { line: first, content }
    pieces = []
    length = 0
    first = ends + 1
    state = 'field'
    return line
  }
  const isFilled = ({ content }: Line): boolean => content?.length !== 0
  for await (const chunk of file) {
    const lines: Line[] = []
    for (let at = 0; at < chunk.length; ) {
      const end = chunk.indexOf(lineFeed, at)
      const piece = chunk.subarray(at, end === -1 ? chunk.length : end + 1)
      at += piece.length
      length += piece.length
      // What is too long is counted and not kept.
      if (length <= lineBytesMax) pieces.push(piece)
      else pieces = []
      if (format === 'csv') state = csvStateAfter(piece, state)
      if (end === -1) continue
      ends += 1
      if (state !== 'quoted') lines.push(take())
    }
    yield { lines: lines.filter(isFilled), bytes: chunk.length }
  }
  if (length > 0) yield { lines: [take()].filter(isFilled), bytes: 0 }
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

function withoutEnd(bytes: Buffer): Buffer {
  let end = bytes.length
  if (bytes[end - 1] === lineFeed) end -= 1
  if (end < bytes.length && bytes[end - 1] === carriageReturn) end -= 1
  return bytes.subarray(0, end)
}

/** Where a reader of CSV stands: where a field begins, in one, within quotes, or after a quote there. */
type CsvState = 'field' | 'plain' | 'quoted' | 'quote'

function csvStateAfter(piece: Buffer, before: CsvState): CsvState {
  let state = before
  for (const byte of piece) {
    if (state === 'quoted') {
      if (byte === quote) state = 'quote'
    } else if (byte === quote && state !== 'plain') state = 'quoted'
    else state = byte === comma ? 'field' : 'plain'
  }
  return state
}

const quote = 0x22
const comma = 0x2c
