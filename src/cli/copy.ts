// The command that moves all plants and tokens from one store to another.
import { statSync } from 'node:fs'
import type { Store } from '../domain/store.ts'
import { type Copied, copyStore } from '../stores/copy.ts'
import { describeStore, type StoreLocation } from '../stores/location.ts'
import { forOperator, openStore } from '../stores/open.ts'
import { Progress } from './progress.ts'
import { type Parsed, UsageProblems } from './settings.ts'
import { isExpected, quietly, type World } from './world.ts'

/** 128 and the number of the signal, as shells have it. */
const exitCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

class Interrupted extends Error {
  readonly exitCode: number

  constructor(exitCode: number) {
    super('Interrupted.')
    this.exitCode = exitCode
  }
}

export async function copy({ values }: Parsed<'from' | 'to'>, world: World): Promise<number> {
  const { from, to } = values as { readonly from: StoreLocation; readonly to: StoreLocation }
  if (identityOf(from) === identityOf(to))
    throw new UsageProblems(['--from and --to name the same store.'])
  const options = { ...quietly(world), patience: 'of a command' } as const
  const source = await openStore(from, { ...options, use: 'existing', ifMissing: 'check --from' })
  try {
    const target = await openStore(to, { ...options, use: 'create' })
    try {
      const copied = await copyShowing(forOperator(source, from), forOperator(target, to), world)
      world.print(outcome(copied, from, to))
      return 0
    } catch (error) {
      const interrupted = error instanceof Interrupted
      if (!(interrupted || isExpected(error))) throw error
      world.tell(interrupted ? error.message : `plants: ${error.message}`)
      world.tell('What was copied is kept; run the same command again to go on.')
      return interrupted ? error.exitCode : 1
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** What a store is, whichever way to it is named. */
function identityOf(location: StoreLocation): string {
  const stats =
    location.scheme === 'sqlite' ? statSync(location.path, { throwIfNoEntry: false }) : undefined
  return stats === undefined ? describeStore(location) : `${stats.dev}:${stats.ino}`
}

async function copyShowing(source: Store, target: Store, world: World): Promise<Copied> {
  let interrupted: Interrupted | undefined
  world.onStopRequest((signal) => {
    if (interrupted !== undefined) world.exit(exitCodes[signal])
    interrupted = new Interrupted(exitCodes[signal])
  })
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
      goOn: () => {
        if (interrupted !== undefined) throw interrupted
      },
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
