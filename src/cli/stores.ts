// The commands on whole stores: "migrate" prepares a store, "copy" copies all of it to another.
import { statSync } from 'node:fs'
import type { Store } from '../domain/store.ts'
import { Refused } from '../refused.ts'
import { type Copied, copyStore } from '../stores/copy.ts'
import { describeStore, type StoreLocation } from '../stores/location.ts'
import { forOperator, migrateStore, openStore } from '../stores/open.ts'
import { Progress } from './progress.ts'
import { type Parsed, UsageProblems } from './settings.ts'
import { quietly, type World } from './world.ts'

export async function migrate(
  { values }: Parsed<'store' | 'print'>,
  world: World,
): Promise<number> {
  const { store, print: onlyPrint } = values
  const statements = await migrateStore(store, onlyPrint, world.clock)
  if (statements === undefined) {
    world.tell(
      `${describeStore(store)} needs no migration: an embedded store is brought up to date whenever it is opened.`,
    )
    return 0
  }
  if (onlyPrint && statements.length > 0)
    world.print(statements.map((statement) => `${statement};`).join('\n\n'))
  world.tell(migrated(describeStore(store), statements.length, onlyPrint))
  return 0
}

function migrated(store: string, count: number, onlyPrint: boolean): string {
  if (count === 0) return `${store} is up to date.`
  return onlyPrint
    ? `${store} needs these ${count} statements; nothing was changed.`
    : `${store} is ready: ${count} statements were run.`
}

/** 128 and the number of the signal, as in shells. */
const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

export async function copy(
  { values: { from, to } }: Parsed<'from' | 'to', 'from' | 'to'>,
  world: World,
): Promise<number> {
  if (identityOf(from) === identityOf(to))
    throw new UsageProblems(['--from and --to name the same store.'])
  const options = { ...quietly(world), patience: 'of a command' } as const
  const source = await openStore(from, { ...options, use: 'existing', ifMissing: 'check --from' })
  try {
    const target = await openStore(to, { ...options, use: 'create' })
    const interruption = new AbortController()
    let exitCode = 1
    world.onStopRequest((signal) => {
      if (interruption.signal.aborted) world.exit(exitCodes[signal])
      exitCode = exitCodes[signal]
      interruption.abort()
    })
    try {
      const stores = [forOperator(source, from), forOperator(target, to)] as const
      const done = await copyShowing(...stores, interruption.signal, world)
      world.print(outcome(done, from, to))
      return 0
    } catch (error) {
      const interrupted = interruption.signal.aborted
      if (!(interrupted || error instanceof Refused)) throw error
      world.tell(interrupted ? 'Interrupted.' : `plants: ${(error as Refused).message}`)
      world.tell('What was copied is kept; run the same command again to go on.')
      return exitCode
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** Equal for two paths to the same store. */
function identityOf(location: StoreLocation): string {
  const stats =
    location.scheme === 'sqlite' ? statSync(location.path, { throwIfNoEntry: false }) : undefined
  return stats === undefined ? describeStore(location) : `${stats.dev}:${stats.ino}`
}

/** Copies one store to another and shows the progress. */
async function copyShowing(
  source: Store,
  target: Store,
  signal: AbortSignal,
  world: World,
): Promise<Copied> {
  const total = await source.kept.countPlants()
  let shown: { readonly phase: string; readonly progress: Progress } | undefined
  try {
    return await copyStore(source, target, {
      progress: (phase, count) => {
        if (shown?.phase !== phase) {
          shown?.progress.end()
          shown = {
            phase,
            progress: new Progress(world, phase, phase === 'tokens' ? undefined : total),
          }
        }
        shown.progress.add(count)
      },
      signal,
    })
  } finally {
    shown?.progress.end()
  }
}

function outcome(
  { plants, accounts, tokens }: Copied,
  from: StoreLocation,
  to: StoreLocation,
): string {
  const counts = `${counted(plants, 'plant')} of ${counted(accounts, 'account')}, and ${counted(tokens, 'token')}`
  return `${describeStore(to)} holds all of ${describeStore(from)}: ${counts}. Counts and checksums agree.`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
