// The operator's door: which commands there are, what each takes, and what runs it.

import packageJson from '../../package.json' with { type: 'json' }
import { withoutTokens } from '../domain/token.ts'
import { describe } from '../log.ts'
import { Refused } from '../refused.ts'
import { withoutPasswords } from '../stores/location.ts'
import { accountDelete, accountExport, accountImport, accountList } from './accounts.ts'
import { backup, restore, verify } from './backups.ts'
import { type Command, helpFor, overview, quotedForShell } from './help.ts'
import { nearest } from './nearest.ts'
import { serve } from './serve.ts'
import { type Parsed, quoted, readSettings, type SettingName, UsageProblems } from './settings.ts'
import { copy, migrate } from './stores.ts'
import { tokenIssue, tokenList, tokenRevoke, tokenRotate } from './tokens.ts'
import { Interrupted, type World } from './world.ts'

const commands: readonly Command[] = [
  command({
    name: 'serve',
    summary: 'Serve the API.',
    positionals: [],
    settings: ['host', 'port', 'metrics-port', 'store', 'trust-proxy', 'public-url', 'first-token'],
    run: serve,
  }),
  command({
    name: 'migrate',
    summary: 'Prepare a PostgreSQL-protocol database, or bring it up to date.',
    positionals: [],
    settings: ['store', 'print'],
    run: migrate,
  }),
  command({
    name: 'copy',
    summary:
      'Copy all plants and tokens from one store to another, or go on with a copy that was interrupted.',
    positionals: [],
    settings: ['from', 'to'],
    required: ['from', 'to'],
    run: copy,
  }),
  command({
    name: 'backup',
    summary: 'Copy an embedded store to a new file, while it is in use.',
    positionals: ['FILE'],
    settings: ['store'],
    run: backup,
  }),
  command({
    name: 'verify',
    summary: 'Read all of a store or a backup and tell whether it is whole, with a checksum.',
    positionals: ['FILE|URL'],
    settings: [],
    run: verify,
  }),
  command({
    name: 'restore',
    summary: 'Verify a backup and put a copy of it in the place of a store that is not there.',
    positionals: ['FILE'],
    settings: ['store'],
    run: restore,
  }),
  command({
    name: 'account list',
    summary: 'List accounts, with how many plants and tokens each has.',
    positionals: [],
    settings: ['json', 'store'],
    run: accountList,
  }),
  command({
    name: 'account delete',
    summary: 'Revoke all tokens of an account and delete all its plants.',
    positionals: [],
    settings: ['account', 'yes', 'store'],
    required: ['account'],
    run: accountDelete,
  }),
  command({
    name: 'account export',
    summary: 'Write all plants of an account, with their ids, to standard output.',
    positionals: [],
    settings: ['account', 'format', 'store'],
    required: ['account'],
    run: accountExport,
  }),
  command({
    name: 'account import',
    summary:
      'Create plants in an account from a file, or from standard input (-), and overwrite none.',
    positionals: ['FILE'],
    settings: ['account', 'format', 'dry-run', 'store'],
    required: ['account'],
    run: accountImport,
  }),
  command({
    name: 'token issue',
    summary: 'Issue a token and print it, this once.',
    positionals: [],
    settings: ['account', 'label', 'scopes', 'expires', 'store'],
    required: ['account'],
    run: tokenIssue,
  }),
  command({
    name: 'token list',
    summary: 'List tokens.',
    positionals: [],
    settings: ['account', 'active', 'json', 'store'],
    run: tokenList,
  }),
  command({
    name: 'token rotate',
    summary: 'Issue a token like another one, print it, and revoke the other one.',
    positionals: ['TOKEN-ID'],
    settings: ['store'],
    run: tokenRotate,
  }),
  command({
    name: 'token revoke',
    summary: 'Revoke a token: from the next request on, or within three seconds on PostgreSQL.',
    positionals: ['TOKEN-ID'],
    settings: ['store'],
    run: tokenRevoke,
  }),
]

/** Exit code of a wrong command line, by convention. A command that fails later exits with 1. */
const usageExitCode = 2

/** Runs a command line and resolves to its exit code. */
export async function run(args: readonly string[], world: World): Promise<number> {
  if (['version', '--version', '-V'].includes(args[0] ?? '')) {
    world.print(packageJson.version)
    return 0
  }
  const end = args.findIndex((arg) => arg.startsWith('-'))
  const words = args.slice(args[0] === 'help' ? 1 : 0, end === -1 ? args.length : end)
  const found = commands.find(({ name }) =>
    name.split(' ').every((word, index) => words[index] === word),
  )
  if (args[0] === 'help' || args.includes('--help') || args.includes('-h')) {
    const related = relatedTo(words)
    if (found !== undefined) world.print(helpFor(found))
    else if (words.length === 0) world.print(overview(commands))
    else if (words.length === 1 && related.length > 0) world.print(overview(related))
    else return unknown(words, world)
    return 0
  }
  if (found === undefined) return unknown(words.length > 0 ? words : args.slice(0, 1), world)
  const name = found.name.split(' ')
  try {
    return await found.run(args.slice(name.length), world)
  } catch (error) {
    if (error instanceof UsageProblems) {
      for (const problem of error.problems)
        world.tell(`plants: ${withoutPasswords(withoutTokens(problem))}`)
      tellHelp(name, world)
      return usageExitCode
    }
    if (error instanceof Interrupted) {
      world.tell(error.message)
      return error.exitCode
    }
    const expected = error instanceof Refused
    world.tell(
      `plants: ${expected ? error.message : `a defect of this program: ${describe(error)}`}`,
    )
    return 1
  }
}

/** Answers a command line that begins with no command, and suggests the nearest one. */
function unknown(words: readonly string[], world: World): number {
  const [first = '', second] = words
  const related = relatedTo(words)
  const names = commands.map(({ name }) => name)
  let meant = second === undefined ? undefined : nearest(`${first} ${second}`, names)
  if (meant === undefined && related.length === 0) {
    const firstWords = names.map((name) => name.replace(/ .*/, ''))
    meant =
      nearest(first, [...firstWords, 'help', 'version', '--help', '--version']) ??
      // "plants list" leaves out what is listed.
      names.find((name) => name.endsWith(` ${first}`))
  }
  // The first word of a group alone is not a mistake, only unfinished.
  if (words.length > 0 && (second !== undefined || related.length === 0)) {
    const typed = withoutPasswords(quoted(words.slice(0, 2).join(' ')))
    const guess = meant === undefined ? '.' : `; did you mean "plants ${meant}"?`
    world.tell(`plants: ${typed} is not a command${guess}`)
  }
  if (meant === undefined) world.tell(overview(related.length > 0 ? related : commands))
  else tellHelp([], world)
  return usageExitCode
}

/** The commands that share a first word, such as "token". */
function relatedTo([first]: readonly string[]): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${first} `))
}

/** Says how to get help, by a command that works when it is pasted. */
function tellHelp(words: readonly string[], { launcher, tell }: World): void {
  tell(`See: ${[launcher, ...words, '--help'].map(quotedForShell).join(' ')}`)
}

function command<const Names extends SettingName, const Required extends Names = never>(
  declared: Omit<Command, 'settings' | 'required' | 'run'> & {
    readonly settings: readonly Names[]
    readonly required?: readonly Required[]
    readonly run: (parsed: Parsed<Names, Required>, world: World) => Promise<number>
  },
): Command {
  const { settings, positionals, required } = declared
  return {
    ...declared,
    run: (args, world) =>
      declared.run(readSettings(settings, positionals, args, world.environment, required), world),
  }
}
