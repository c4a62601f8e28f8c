// The process as a command sees it. main.ts hands the real one in; tests may hand in another.
import type { Clock } from '../clock.ts'
import { Refused } from '../refused.ts'

export interface World {
  /** The absolute path of bin/plants, for commands to paste. */
  readonly launcher: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Writes a line of the command's result to standard output. */
  readonly print: (text: string) => void
  /**
   * Writes a part of the command's result to standard output, as it is. Rejects with the system's
   * error.
   */
  readonly write: (text: string) => Promise<void>
  /** Writes a line for people to standard error. */
  readonly tell: (text: string) => void
  /** Writes text to standard error without ending the line, to draw on a terminal. */
  readonly draw: (text: string) => void
  readonly inputDescriptor: number
  readonly inputIsTerminal: boolean
  /**
   * Asks a person on a terminal, and resolves to the line that was typed; empty at the end. Rejects
   * with Interrupted.
   */
  readonly ask: (question: string) => Promise<string>
  readonly outputIsTerminal: boolean
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

/** A request to stop ended a command before its work was done. */
export class Interrupted extends Refused {
  /** 128 and the number of the signal, as in shells. */
  readonly exitCode: number

  constructor(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP') {
    super('Interrupted.')
    this.exitCode = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }[signal]
  }
}

/**
 * Aborts with Interrupted at the first request to stop, so that a command can end in order. A second
 * request ends the process.
 */
export function untilStopped({ onStopRequest, exit }: World): AbortSignal {
  const interruption = new AbortController()
  onStopRequest((signal) => {
    const interrupted = new Interrupted(signal)
    if (interruption.signal.aborted) exit(interrupted.exitCode)
    interruption.abort(interrupted)
  })
  return interruption.signal
}
