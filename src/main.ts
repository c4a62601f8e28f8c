// The process's edge: arguments, environment, streams, signals and exit codes. Nothing else here.
import { randomBytes } from 'node:crypto'
import { readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isatty } from 'node:tty'
import { run } from './cli/commands.ts'
import { Interrupted, type World } from './cli/world.ts'
import { systemClock } from './clock.ts'
import { Refused } from './refused.ts'

const world: World = {
  launcher: join(import.meta.dirname, '../bin/plants'),
  environment: process.env,
  print: (text) => write(1, `${text}\n`),
  write: async (text) => {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(1, bytes, at)
      } catch (error) {
        // A pipe that does not block, and whose reader is slow.
        if ((error as { code?: string }).code !== 'EAGAIN') refuse(error)
        await systemClock.sleep(10)
      }
    }
  },
  tell: (text) => write(2, `${text}\n`),
  draw: (text) => write(2, text),
  inputDescriptor: 0,
  inputIsTerminal: isatty(0),
  ask: (question) =>
    new Promise((resolve, reject) => {
      const asking = createInterface({ input: process.stdin, output: process.stderr })
      asking.on('SIGINT', () => {
        reject(new Interrupted('SIGINT'))
        asking.close()
      })
      asking.on('close', () => resolve(''))
      asking.question(question, (answer) => {
        resolve(answer)
        asking.close()
      })
    }),
  outputIsTerminal: isatty(1),
  errorDescriptor: 2,
  errorIsTerminal: process.stderr.isTTY === true,
  clock: systemClock,
  randomBytes,
  onStopRequest: (stop) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal))
    if (!hangUpIsIgnored()) process.on('SIGHUP', () => stop('SIGHUP'))
  },
  exit: process.exit,
}

/** 128 and the number of SIGPIPE: the exit code of a program whose reader has left. */
const brokenPipeExitCode = 141

function write(descriptor: number, text: string): void {
  try {
    writeSync(descriptor, text)
  } catch (error) {
    refuse(error)
  }
}

function refuse(error: unknown): never {
  const { code, message } = error as Error & { code?: string }
  if (code === 'EPIPE') process.exit(brokenPipeExitCode)
  throw new Refused(`The output cannot be written: ${message}.`, { cause: error })
}

/**
 * nohup starts a program with SIGHUP ignored, and a handler would undo that. Only Linux says
 * whether a signal is ignored.
 */
function hangUpIsIgnored(): boolean {
  try {
    const [, mask] =
      /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
    return mask !== undefined && (BigInt(`0x${mask}`) & 1n) === 1n
  } catch {
    return false
  }
}

/** Help, too, may find its output full. */
async function runToEnd(): Promise<number> {
  try {
    return await run(process.argv.slice(2), world)
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    process.stderr.write(`plants: ${error.message}\n`)
    return 1
  }
}

process.exit(await runToEnd())
