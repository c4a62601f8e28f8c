// The commands on backups: "backup" makes one of a store that may be in use.
import { Mistake } from '../refused.ts'
import { describeStore, readStoreLocation, type SqliteLocation } from '../stores/location.ts'
import { backupSqliteStore } from '../stores/open.ts'
import { showPhases } from './progress.ts'
import { type Parsed, UsageProblems } from './settings.ts'
import { counted } from './stores.ts'
import { untilStopped, type World } from './world.ts'

export async function backup(
  { values: { store }, positionals: [file = ''] }: Parsed<'store'>,
  world: World,
): Promise<number> {
  const target = fileOf(file, world)
  const problems = target instanceof Mistake ? [`FILE must be ${target.mustBe}.`] : []
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

/** Reads the name, or the URL, of a file that is a store or will be one. */
function fileOf(text: string, { environment }: World): SqliteLocation | Mistake {
  const url = /^(?:sqlite|postgres(?:ql)?):/.test(text) ? text : `sqlite:${text}`
  const location = readStoreLocation(url, environment)
  if (location instanceof Mistake) return location
  return location.scheme === 'sqlite' ? location : new Mistake('a file of this machine, not a URL')
}
