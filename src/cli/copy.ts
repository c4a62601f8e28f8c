// The command that moves all plants and tokens from one store to another.
import { type Parsed, UsageProblems } from '../config.ts'
import { type Copied, copyStore } from '../domain/copyStore.ts'
import { Failure } from '../domain/failure.ts'
import type { Store } from '../domain/store.ts'
import { openStore } from '../service.ts'
import { describeStore, type StoreLocation } from '../storeLocation.ts'
import { Progress } from './progress.ts'
import type { World } from './world.ts'

/** 128 and the number of SIGINT, as shells have it. */
const interruptedExitCode = 130

class Interrupted extends Error {}

export async function copy({ values }: Parsed<'from' | 'to'>, world: World): Promise<number> {
  const { from, to } = values as { readonly from: StoreLocation; readonly to: StoreLocation }
  if (describeStore(from) === describeStore(to)) throw new UsageProblems(['--from and --to name the same store.'])
  const surroundings = { randomBytes: world.randomBytes, note: () => {}, patience: 'of a command' } as const
  const source = await openStore(from, 'existing', { ...surroundings, ifMissing: 'check --from' })
  try {
    const target = await openStore(to, 'create', surroundings)
    try {
      const copied = await copyShowing(source, target, world)
      world.print(outcome(copied, from, to))
      return 0
    } finally {
      await target.close()
    }
  } catch (error) {
    if (!(error instanceof Interrupted || error instanceof Failure)) throw error
    world.tell(error instanceof Failure ? `plants: ${error.message}` : 'Interrupted.')
    world.tell('What was copied is kept; run the same command again to go on.')
    return error instanceof Failure ? 1 : interruptedExitCode
  } finally {
    await source.close()
  }
}

async function copyShowing(source: Store, target: Store, world: World): Promise<Copied> {
  let interrupted = false
  world.onStopRequest(() => {
    if (interrupted) world.exit(interruptedExitCode)
    interrupted = true
  })
  const total = await source.countPlants()
  let shown: { readonly phase: string; readonly progress: Progress } | undefined
  try {
    return await copyStore(source, target, {
      progress: (phase, count) => {
        if (shown?.phase !== phase) {
          shown?.progress.end()
          shown = { phase, progress: new Progress(world, phase, phase === 'tokens' ? undefined : total) }
        }
        shown.progress.add(count)
      },
      goOn: () => {
        if (interrupted) throw new Interrupted()
      },
    })
  } finally {
    shown?.progress.end()
  }
}

function outcome({ plants, accounts, tokens }: Copied, from: StoreLocation, to: StoreLocation): string {
  const counts = `${counted(plants, 'plant')} of ${counted(accounts, 'account')}, and ${counted(tokens, 'token')}`
  return `${describeStore(to)} holds all of ${describeStore(from)}: ${counts}. Counts and checksums agree.`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
