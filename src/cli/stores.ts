// The commands on whole stores: "migrate" prepares a store, "copy" copies all of it to another. And
// how every other command opens its store.
import { statSync } from 'node:fs'
import type { Store } from '../domain/store.ts'
import { Refused } from '../refused.ts'
import { type Copied, copyStore } from '../stores/copy.ts'
import { describeStore, type StoreLocation, type StoreOptions } from '../stores/location.ts'
import { forOperator, migrateStore, openStore } from '../stores/open.ts'
import { commandToPaste } from './help.ts'
import { showPhases } from './progress.ts'
import { type Parsed, UsageProblems } from './settings.ts'
import { Interrupted, quietly, untilStopped, type World } from './world.ts'

export async function migrate(
  { values }: Parsed<'store' | 'print'>,
  world: World,
): Promise<number> {
  const { store, print: onlyPrint } = values
  const name = describeStore(store)
  const statements = await migrateStore(store, onlyPrint, world.clock)
  if (statements === undefined) {
    world.tell(
      `${name} needs no migration: an embedded store is brought up to date whenever it is opened.`,
    )
  } else if (statements.length === 0) {
    world.tell(`${name} is up to date.`)
  } else if (onlyPrint) {
    world.print(statements.map((statement) => `${statement};`).join('\n\n'))
    world.tell(`${name} needs these ${statements.length} statements; nothing was changed.`)
  } else {
    world.tell(`${name} is ready: ${statements.length} statements were run.`)
  }
  return 0
}

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
    try {
      const stores = [forOperator(source, from), forOperator(target, to)] as const
      const done = await copyShowing(...stores, untilStopped(world), world)
      const copied = `${counted(done.plants, 'plant')} of ${counted(done.accounts, 'account')}, and ${counted(done.tokens, 'token')}`
      world.print(
        `${describeStore(to)} holds all of ${describeStore(from)}: ${copied}. Counts and checksums agree.`,
      )
      return 0
    } catch (error) {
      throw saying('What was copied is kept; run the same command again to go on.', error)
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
  const shown = showPhases(world)
  try {
    return await copyStore(source, target, {
      progress: (phase, count) => shown.add(phase, count, phase === 'tokens' ? undefined : total),
      signal,
    })
  } finally {
    shown.end()
  }
}

/** Does a command's work with its store, which must be there. */
export async function withStore(
  location: StoreLocation,
  patience: StoreOptions['patience'],
  world: World,
  work: (store: Store) => Promise<number>,
): Promise<number> {
  const ifMissing = `start the server first (${commandToPaste(world, ['serve'], location)}), or check --store`
  const store = await openStore(location, {
    ...quietly(world),
    use: 'existing',
    patience,
    ifMissing,
  })
  try {
    return await work(forOperator(store, location))
  } finally {
    await store.close()
  }
}

/** Adds how to go on to the message of an error after which the same command may go on. */
export function saying(howToGoOn: string, error: unknown): unknown {
  // Only what a store refuses has a cause. To repeat work that found something wrong is no use.
  if (error instanceof Interrupted || (error instanceof Refused && error.cause !== undefined))
    error.message += `\n${howToGoOn}`
  return error
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
