// The commands on backups: "backup" makes one of a store that may be in use, "verify" reads all of
// a store or a backup.
import { Mistake } from '../refused.ts'
import {
  describeStore,
  readStoreLocation,
  type SqliteLocation,
  type StoreLocation,
} from '../stores/location.ts'
import { backupSqliteStore, verifyStore } from '../stores/open.ts'
import { showPhases } from './progress.ts'
import { type Parsed, quoted, UsageProblems } from './settings.ts'
import { counted } from './stores.ts'
import { quietly, untilStopped, type World } from './world.ts'

export async function backup(
  { values: { store }, positionals: [file = ''] }: Parsed<'store'>,
  world: World,
): Promise<number> {
  const target = fileOf(file, world)
  const problems =
    target instanceof Mistake ? [`FILE must be ${target.mustBe}, not ${quoted(file)}.`] : []
  if (store.scheme !== 'sqlite')
    problems.push(
      `--store must be sqlite:FILE, not ${describeStore(store)}: a database is backed up by its own programs, such as pg_dump, or by "plants copy --from URL --to sqlite:FILE".`,
    )
  if (store.scheme !== 'sqlite' || target instanceof Mistake) throw new UsageProblems(problems)
  const shown = showPhases(world)
  const { plants, tokens, bytes } = await backupSqliteStore(store, target, {
    clock: world.clock,
    progress: (pages, total) => shown.add('pages', pages, total),
    signal: untilStopped(world),
  }).finally(shown.end)
  world.print(
    `${target.path} is a backup of ${describeStore(store)}: ${counted(plants, 'plant')} and ${counted(tokens, 'token')} in ${counted(bytes, 'byte')}.`,
  )
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
  const { plants, accounts, tokens, checksum } = await verifyStore(location, {
    ...quietly(world),
    progress: (plants, total) => shown.add('plants', plants, total),
    // Nothing is left behind by a process that ends at once.
    signal: new AbortController().signal,
  }).finally(shown.end)
  world.print(
    `${describeStore(location)} is whole: ${counted(plants, 'plant')} of ${counted(accounts, 'account')}, and ${counted(tokens, 'token')}. SHA-256: ${checksum}`,
  )
  return 0
}

/** Reads the name of a file, or a URL. */
function placeOf(text: string, { environment }: World): StoreLocation | Mistake {
  const url = /^(?:sqlite|postgres(?:ql)?):/.test(text) ? text : `sqlite:${text}`
  return readStoreLocation(url, environment)
}

function fileOf(text: string, world: World): SqliteLocation | Mistake {
  const location = placeOf(text, world)
  if (location instanceof Mistake || location.scheme === 'sqlite') return location
  return new Mistake('a file of this machine')
}
