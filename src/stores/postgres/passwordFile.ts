// The password file: https://www.postgresql.org/docs/current/libpq-pgpass.html
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

type PasswordOf = (of: {
  host: string
  port: number
  database: string
  user: string
}) => string | undefined

/** The passwords of the file that PGPASSFILE names, or of ~/.pgpass; adds what is wrong with it. */
export function readPasswordFile(environment: Environment, wrong: string[]): PasswordOf {
  const named = environment['PGPASSFILE']
  const path = named || join(environment['HOME'] ?? '', '.pgpass')
  try {
    const { mode } = statSync(path)
    if ((mode & 0o077) === 0) return passwordOf(readFileSync(path, 'utf8'))
    wrong.push(`whose password file ${path} is closed to others (chmod 0600)`)
  } catch {
    if (named) wrong.push(`whose password file ${path} (PGPASSFILE) can be read`)
  }
  return () => undefined
}

function passwordOf(text: string): PasswordOf {
  const entries = text
    .split(/\r?\n/)
    .filter((line) => !line.startsWith('#'))
    .map((line) =>
      [...line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g)].map(([, field = '']) =>
        field.replace(/\\(.)/g, '$1'),
      ),
    )
  return ({ host, port, database, user }) => {
    const wanted = [host, String(port), database, user]
    return entries.find((fields) =>
      wanted.every((value, index) => fields[index] === '*' || fields[index] === value),
    )?.[4]
  }
}
