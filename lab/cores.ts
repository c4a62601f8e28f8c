// Server and loader each have a core of their own, so that neither takes time from the other.
import { spawn } from 'node:child_process'

export const serverCore = 0
export const loaderCore = 1

/** A command line that runs on one core. */
export function pinned(command: readonly string[], core: number): [string, string[]] {
  return ['taskset', ['-c', String(core), ...command]]
}

/**
 * Runs a program to its end and gives what it printed; rejects, with what it said, where it fails.
 */
export function runPinned(command: readonly string[], core: number): Promise<string> {
  const child = spawn(...pinned(command, core), { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  child.stderr?.on('data', (data) => {
    errors += data
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve(output)
      else
        reject(
          new Error(
            `${command.join(' ').slice(0, 200)} ended with ${code}: ${(errors || output).slice(-2000)}`,
          ),
        )
    })
  })
}
