// The process's edge: arguments, environment, streams, signals and exit codes. Nothing else here.
import { randomBytes } from 'node:crypto'
import { writeSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './cli/commands.ts'
import type { World } from './cli/world.ts'

const world: World = {
  launcher: join(import.meta.dirname, '../bin/plants'),
  environment: process.env,
  print: (text) => void writeSync(1, `${text}\n`),
  tell: (text) => void writeSync(2, `${text}\n`),
  draw: (text) => void writeSync(2, text),
  errorDescriptor: 2,
  errorIsTerminal: process.stderr.isTTY === true,
  nowMs: Date.now,
  monotonicMs: () => performance.now(),
  randomBytes,
  onStopRequest: (stop) => {
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  },
  exit: process.exit,
}

try {
  process.exit(await run(process.argv.slice(2), world))
} catch (error) {
  // One sentence for the operator; a stack is of no use to them.
  world.tell(`plants: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
