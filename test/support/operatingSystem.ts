// What real servers need of the operating system: free ports, a user that is not root, an end for a
// process with all its children, a disk that can be filled, and waiting with a bound.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './clock.ts'

export const host = '127.0.0.1'

/** PostgreSQL refuses root, so as root everything runs as "nobody". */
export const asOther = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** Makes a folder and what is in it belong to whom the programs run as. */
export function giveAway(folder: string): void {
  if (asOther.uid !== undefined) spawnSync('chown', ['-R', `${asOther.uid}:${asOther.gid}`, folder])
}

const portsGiven = new Set<number>()

/** A port that nobody listens on, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  // Below the range from which connections take their ports, so that it stays free while the server
  // is down.
  const port = 15_000 + Math.floor(Math.random() * 15_000)
  if (portsGiven.has(port)) return await freePort()
  portsGiven.add(port)
  const free = await new Promise<boolean>((resolve) => {
    const listener = createServer().once('error', () => resolve(false))
    listener.listen(port, host, () => listener.close(() => resolve(true)))
  })
  return free ? port : await freePort()
}

export function send(processIds: readonly number[], signal: NodeJS.Signals): void {
  for (const processId of processIds) {
    try {
      process.kill(processId, signal)
    } catch {
      // It is gone already.
    }
  }
}

/** A process and all that descend from it. */
export function family(processId: number): number[] {
  const all = processes()
  const found = [processId]
  for (const parent of found)
    found.push(...all.filter(({ parentId }) => parentId === parent).map((child) => child.processId))
  return found
}

/** Ends processes and all that descend from them at once, as a power cut would. */
export async function killFamilies(processIds: readonly number[]): Promise<void> {
  // Halted first, so that they start no others while their children are counted.
  send(processIds, 'SIGSTOP')
  const all = processIds.flatMap(family)
  send(all, 'SIGKILL')
  await gone(all)
}

/** Whether one of them is more than an entry that nobody has collected. */
export function areAlive(processIds: readonly number[]): boolean {
  return processes().some(
    ({ processId, state }) => processIds.includes(processId) && !state.startsWith('Z'),
  )
}

export function gone(processIds: readonly number[]): Promise<void> {
  return until('every process is gone', () => !areAlive(processIds))
}

interface Process {
  readonly processId: number
  readonly parentId: number
  readonly state: string
}

/** All processes: from /proc if there is one, since small Linux systems have no ps. */
function processes(): Process[] {
  const lines = existsSync('/proc/self/stat')
    ? readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(statusLine)
    : spawnSync('ps', ['-A', '-o', 'pid=,state=,ppid='], { encoding: 'utf8' }).stdout.split('\n')
  return lines.map((line) => {
    const [processId, state = '', parentId] = line.trim().split(/\s+/)
    return { processId: Number(processId), state, parentId: Number(parentId) }
  })
}

/** The line of a process as ps has it; the name, in parentheses, may hold spaces. */
function statusLine(processId: string): string {
  try {
    return readFileSync(`/proc/${processId}/stat`, 'utf8').replace(/\(.*\)/s, '')
  } catch {
    return ''
  }
}

/** Filling a disk takes one that is small, and mounting one takes root. */
export function mayMount(): boolean {
  const trial = mkdtempSync(join(tmpdir(), 'plants-test-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16k', 'tmpfs', trial], { stdio: 'ignore' })
    execFileSync('umount', [trial])
    return true
  } catch {
    return false
  } finally {
    rmSync(trial, { recursive: true })
  }
}
