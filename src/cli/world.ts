// What a command sees of the process around it. main.ts hands it over; tests may hand over another.
import type { Clock } from '../clock.ts'

export type StopSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP'

export interface World {
  /** The absolute path of bin/plants, for commands to paste. */
  readonly launcher: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Writes to standard output: what was asked for. */
  readonly print: (text: string) => void
  /** Writes to standard error: what a person should know. */
  readonly tell: (text: string) => void
  /** Writes to standard error as it stands: what is drawn on a terminal. */
  readonly draw: (text: string) => void
  readonly errorDescriptor: number
  readonly errorIsTerminal: boolean
  readonly clock: Clock
  readonly randomBytes: (count: number) => Uint8Array
  /** Calls back at each request to stop. */
  readonly onStopRequest: (stop: (signal: StopSignal) => void) => void
  /** Ends the process at once. */
  readonly exit: (code: number) => never
}

/** What a command's store is opened with: it says nothing of its own. */
export function quietly({ clock, randomBytes }: World): {
  readonly clock: Clock
  readonly randomBytes: World['randomBytes']
  readonly note: () => void
  readonly warn: () => void
} {
  return { clock, randomBytes, note: () => {}, warn: () => {} }
}
