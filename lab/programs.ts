// The programs that measurements start: which of them are missing, on which core they run, and what
// they say.
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'

/** Server and loader each have a core of their own, so that neither takes time from the other. */
export const serverCore = 0
export const loaderCore = 1

// Debian keeps some programs where only root looks.
process.env['PATH'] += ':/usr/sbin'

/**
 * What of the programs is not there, as a sentence that says what to do. `packages` names the
 * Debian package of each.
 */
export function missingPrograms(packages: Readonly<Record<string, string>>): string | undefined {
  const missing = Object.entries(packages).filter(
    ([program]) => spawnSync('which', [program]).status !== 0,
  )
  if (missing.length === 0) return undefined
  const programs = missing.map(([program]) => program).join(', ')
  return `This needs ${programs}: on Debian, apt-get install ${missing.map(([, name]) => name).join(' ')}.`
}

/** A command line that runs on one core. */
export function pinned(command: readonly string[], core: number): string[] {
  return ['taskset', '-c', String(core), ...command]
}

/** Runs a program to its end and gives what it printed; rejects with what it said if it fails. */
export async function runPinned(command: readonly string[], core: number): Promise<string> {
  const child = Bun.spawn(pinned(command, core), { stderr: 'pipe' })
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code === 0) return output
  throw new Error(
    `${command.join(' ').slice(0, 200)} ended with ${code}: ${(errors || output).slice(-2000)}`,
  )
}

/**
 * Starts a program in a session of its own, so that an interrupt from the terminal reaches only us.
 * What it prints goes to a file.
 */
export function launch(
  [program = '', ...args]: readonly string[],
  logFile: string,
  options: SpawnOptions,
): ChildProcess {
  const log = openSync(logFile, 'a')
  const env = { ...options.env, PATH: process.env['PATH'] }
  const stdio = ['ignore', log, log] as const
  const child = spawn(program, args, { ...options, env, detached: true, stdio: [...stdio] })
  closeSync(log)
  child.on('error', () => {})
  return child
}
