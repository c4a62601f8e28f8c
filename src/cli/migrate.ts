// The command that prepares a database, or brings it up to date.

import { describeStore } from '../stores/location.ts'
import { migrateStore } from '../stores/open.ts'
import type { Parsed } from './settings.ts'
import type { World } from './world.ts'

export async function migrate(
  { values }: Parsed<'store' | 'print'>,
  world: World,
): Promise<number> {
  const { store, print: onlyPrint } = values
  const statements = await migrateStore(store, onlyPrint)
  if (statements === undefined) {
    world.tell(
      `${describeStore(store)} needs no migration: an embedded store is brought up to date whenever it is opened.`,
    )
    return 0
  }
  if (onlyPrint && statements.length > 0)
    world.print(statements.map((statement) => `${statement};`).join('\n\n'))
  world.tell(outcome(describeStore(store), statements.length, onlyPrint))
  return 0
}

function outcome(store: string, count: number, onlyPrint: boolean): string {
  if (count === 0) return `${store} is up to date.`
  return onlyPrint
    ? `${store} needs these ${count} statements; nothing was changed.`
    : `${store} is ready: ${count} statements were run.`
}
