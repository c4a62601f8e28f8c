// Where an embedded store is: a file on this machine.
import { resolve } from 'node:path'
import { Mistake } from '../../refused.ts'

export interface SqliteLocation {
  readonly scheme: 'sqlite'
  /**
   * Absolute, so that every sentence and every command to paste names the same file in any folder.
   */
  readonly path: string
}

/** Reads what stands after "sqlite:". */
export function readSqliteLocation(path: string): SqliteLocation | Mistake {
  if (path.endsWith('/')) return new Mistake(`sqlite:FILE, such as sqlite:${path}plants.db`)
  const plainPath = path.replace(/^(?:\/\/|file:)/, '').replace(/\?.*$/s, '')
  if (plainPath !== path)
    return new Mistake(
      `sqlite:FILE without slashes before it, "file:" or a question mark; try sqlite:${plainPath}`,
    )
  if (path.startsWith('~'))
    return new Mistake(
      'sqlite:FILE with the name of your folder written out: "~" has no meaning here',
    )
  if (path === ':memory:')
    return new Mistake(
      'the sqlite:FILE of a real file, since a store in memory would lose what was acknowledged',
    )
  return { scheme: 'sqlite', path: resolve(path) }
}
