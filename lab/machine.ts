// What the numbers were measured on: a reader needs it to know what they mean.
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { peerNode } from './servers.ts'
import { median } from './statistics.ts'

const syncs = 200

export async function describeMachine(folder: string): Promise<Readonly<Record<string, string>>> {
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: `${availableParallelism()} cores of ${cpus()[0]?.model.trim() ?? 'an unknown processor'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()}`,
    'a sync of the disk': `${syncMs(folder).toFixed(2)} ms`,
    Bun: Bun.version,
    'Node of the peers': versionOf(peerNode),
  }
}

/** The median time to sync 4 KiB that were added to a file. */
function syncMs(folder: string): number {
  const file = openSync(join(folder, 'sync'), 'w')
  const page = Buffer.alloc(4096)
  const times = Array.from({ length: syncs }, () => {
    const startMs = performance.now()
    writeSync(file, page)
    fdatasyncSync(file)
    return performance.now() - startMs
  })
  closeSync(file)
  return median(times)
}

function versionOf(program: string): string {
  try {
    return execFileSync(program, ['--version'], { encoding: 'utf8' }).trim()
  } catch {
    return 'not there'
  }
}
