// The commands on backups: "backup" makes one of a store that may be in use, "verify" reads all of
// a store or a backup, "restore" puts a backup in the place of a store.
import { Mistake } from '../refused.ts'
import {
  describeStore,
  readStoreLocation,
  type SqliteLocation,
  type StoreLocation,
} from '../stores/location.ts'
import { backupSqliteStore, restoreSqliteStore, verifyStore } from '../stores/open.ts'
import type { Summary } from '../stores/summary.ts'
import { showPhases } from './progress.ts'
import { type Parsed, quoted, UsageProblems } from './settings.ts'
import { counted } from './stores.ts'
import { quietly, untilStopped, type World } from './world.ts'

export async function backup(parsed: Parsed<'store'>, world: World): Promise<number> {
  const { store, file } = readFiles(
    parsed,
    'a database is backed up by its own programs, such as pg_dump, or by "plants copy --from URL --to sqlite:FILE"',
    world,
  )
  const shown = showPhases(world)
  const { plants, tokens, bytes } = await backupSqliteStore(store, file, {
    clock: world.clock,
    progress: shown.add,
    signal: untilStopped(world),
  }).finally(shown.end)
  world.print(
    `${file.path} is a backup of ${describeStore(store)}: ${counted(plants, 'plant')} and ${counted(tokens, 'token')} in ${counted(bytes, 'byte')}.`,
  )
  return 0
}

export async function restore(parsed: Parsed<'store'>, world: World): Promise<number> {
  const { store, file } = readFiles(
    parsed,
    'a database takes what a file holds by "plants copy --from sqlite:FILE --to URL"',
    world,
  )
  const shown = showPhases(world)
  const summary = await restoreSqliteStore(file, store, {
    clock: world.clock,
    progress: shown.add,
    signal: untilStopped(world),
  }).finally(shown.end)
  world.print(`${describeStore(store)} is restored from ${file.path}: ${textOf(summary)}`)
  return 0
}

export async function verify(
  { positionals: [place = ''] }: Parsed<never>,
  world: World,
): Promise<number> {
  const location = placeOf(place, world)
  if (location instanceof Mistake)
    throw new UsageProblems([`FILE|URL must be ${location.mustBe}, not ${quoted(place)}.`])
  const shown = showPhases(world)
  const summary = await verifyStore(location, {
    ...quietly(world),
    progress: (plants, total) => shown.add('plants', plants, total),
    // Nothing is left behind by a process that ends at once.
    signal: new AbortController().signal,
  }).finally(shown.end)
  world.print(`${describeStore(location)} is whole: ${textOf(summary)}`)
  return 0
}

function textOf({ plants, accounts, tokens, checksum }: Summary): string {
  return `${counted(plants, 'plant')} of ${counted(accounts, 'account')}, and ${counted(tokens, 'token')}. SHA-256: ${checksum}`
}

/** Reads FILE and --store, both files of this machine. Throws UsageProblems. */
function readFiles(
  { values: { store }, positionals: [name = ''] }: Parsed<'store'>,
  ifDatabase: string,
  world: World,
): { readonly store: SqliteLocation; readonly file: SqliteLocation } {
  const place = placeOf(name, world)
  const file =
    place instanceof Mistake || place.scheme === 'sqlite'
      ? place
      : new Mistake('a file of this machine')
  if (!(file instanceof Mistake) && store.scheme === 'sqlite') return { store, file }
  const problems =
    file instanceof Mistake ? [`FILE must be ${file.mustBe}, not ${quoted(name)}.`] : []
  if (store.scheme !== 'sqlite')
    problems.push(`--store must be sqlite:FILE, not ${describeStore(store)}: ${ifDatabase}.`)
  throw new UsageProblems(problems)
}

/** Reads the name of a file, or a URL. */
function placeOf(text: string, { environment }: World): StoreLocation | Mistake {
  const url = /^(?:sqlite|postgres(?:ql)?):/.test(text) ? text : `sqlite:${text}`
  return readStoreLocation(url, environment)
}
