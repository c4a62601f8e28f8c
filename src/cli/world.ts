// The process as a command sees it. main.ts hands the real one in; tests may hand in another.
import type { Clock } from '../clock.ts'

export interface World {
  /** The absolute path of bin/plants, for commands to paste. */
  readonly launcher: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Writes a line of the command's result to standard output. */
  readonly print: (text: string) => void
  /** Writes a line for people to standard error. */
  readonly tell: (text: string) => void
  /** Writes text to standard error without ending the line, to draw on a terminal. */
  readonly draw: (text: string) => void
  readonly errorDescriptor: number
  readonly errorIsTerminal: boolean
  readonly clock: Clock
  readonly randomBytes: (count: number) => Uint8Array
  /** Calls `stop` at each request to stop. */
  readonly onStopRequest: (stop: (signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') => void) => void
  /** Ends the process at once. */
  readonly exit: (code: number) => never
}

/** Options for opening a command's store, which then logs nothing. */
export function quietly({ clock, randomBytes }: World): {
  readonly clock: Clock
  readonly randomBytes: World['randomBytes']
  readonly note: () => void
  readonly warn: () => void
} {
  return { clock, randomBytes, note: () => {}, warn: () => {} }
}
