// What a run starts and must end: programs with their descendants, free ports, and waiting with a
// bound.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'

export const host = '127.0.0.1'

/**
 * Starts a program in a session of its own, so that an interrupt from the terminal reaches only us.
 */
export function launch(
  command: readonly string[],
  logPath: string,
  options: SpawnOptions = {},
): ChildProcess {
  const log = openSync(logPath, 'a')
  const [program = '', ...args] = command
  const child = spawn(program, args, { ...options, detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  child.on('error', () => {})
  return child
}

export function signal(processIds: readonly number[], name: NodeJS.Signals): void {
  for (const processId of processIds) {
    try {
      process.kill(processId, name)
    } catch {
      // It is gone already.
    }
  }
}

/** Ends a process and what descends from it at once, as a power cut would. */
export async function killFamilies(processIds: readonly number[]): Promise<void> {
  // Halted first, so that they start no others while they are counted.
  signal(processIds, 'SIGSTOP')
  const all = processIds.flatMap(family)
  signal(all, 'SIGKILL')
  await until('every process is gone', 10_000, () => !all.some(isAlive))
}

/** A process and what descends from it. */
export function family(processId: number): number[] {
  const parents = new Map(
    readdirSync('/proc').flatMap((name) =>
      /^\d+$/.test(name) ? [[Number(name), parentOf(name)]] : [],
    ),
  )
  const found = [processId]
  for (const parent of found)
    for (const [child, its] of parents) if (its === parent) found.push(child)
  return found
}

export function isAlive(processId: number): boolean {
  const state = statusFields(String(processId))[0]
  return state !== undefined && state !== 'Z'
}

function parentOf(processId: string): number | undefined {
  const parent = statusFields(processId)[1]
  return parent === undefined ? undefined : Number(parent)
}

/** What follows the name, which may hold spaces. */
function statusFields(processId: string): string[] {
  try {
    return readFileSync(`/proc/${processId}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
  } catch {
    return []
  }
}

/** Ports that nobody listens on, below those that connections take. */
export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>()
  for (let attempt = 0; found.size < count; attempt += 1) {
    if (attempt > 1000) throw new Error('no free ports were found')
    const port = 15_000 + Math.floor(Math.random() * 15_000)
    if (await isFree(port)) found.add(port)
  }
  return [...found]
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const listener = createServer().once('error', () => resolve(false))
    listener.listen(port, host, () => listener.close(() => resolve(true)))
  })
}

export async function until(
  what: string,
  timeoutMs: number,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`)
    await Bun.sleep(50)
  }
}

/** Rejects when the user interrupts the run. */
export function interrupted(): Promise<never> {
  return new Promise((_, reject) => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(name, () => reject(new Error(`ended by ${name}`)))
  })
}

/** The first argument after a flag, as a number within bounds. */
export function countFlag(
  args: readonly string[],
  flag: string,
  otherwise: number,
  max: number,
): number {
  const at = args.indexOf(flag)
  if (at < 0) return otherwise
  const count = Number(args[at + 1])
  if (!(Number.isInteger(count) && count >= 0 && count <= max))
    throw new Error(`${flag} takes a number from 0 to ${max}`)
  return count
}

/** Which of the programs are not there. */
export function missing(programs: readonly string[]): string[] {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin']
  return programs.filter(
    (program) => !folders.some((folder) => Bun.file(`${folder}/${program}`).size > 0),
  )
}
