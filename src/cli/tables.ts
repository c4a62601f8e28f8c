// Tables for people, and times as they stand in them.
import { dateOf } from '../clock.ts'

/** Rows of cells, the first of them the head, in columns. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A moment as ISO 8601 has it, in UTC. */
export function timeText(timeMs: number | null): string | null {
  return timeMs === null ? null : dateOf(timeMs).toISOString()
}

/** When something was last used: uses are noted by the hour. */
export function useText(timeMs: number | null): string {
  return timeText(timeMs)?.replace(/T(..).*/, ' $1h') ?? 'never'
}
