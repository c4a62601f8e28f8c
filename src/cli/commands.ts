// The operator's door: which commands there are, what each takes, and what runs it.

import { withoutTokens } from '../domain/token.ts'
import { describe } from '../log.ts'
import { Refused } from '../refused.ts'
import { withoutPasswords } from '../stores/location.ts'
import { type Command, helpFor, overview, quotedForShell, version } from './help.ts'
import { nearest } from './nearest.ts'
import { serve } from './serve.ts'
import { type Parsed, quoted, readSettings, type SettingName, UsageProblems } from './settings.ts'
import { copy, migrate } from './stores.ts'
import { tokenIssue, tokenList, tokenRevoke } from './tokens.ts'
import type { World } from './world.ts'

interface RunnableCommand extends Command {
  /** Resolves to the exit code. */
  readonly run: (args: readonly string[], world: World) => Promise<number>
}

function command<const Names extends SettingName, const Required extends Names = never>(
  declared: Omit<Command, 'settings' | 'required'> & {
    readonly settings: readonly Names[]
    readonly required?: readonly Required[]
  },
  run: (parsed: Parsed<Names, Required>, world: World) => Promise<number>,
): RunnableCommand {
  return {
    ...declared,
    run: (args, world) =>
      run(
        readSettings(
          declared.settings,
          declared.positionals,
          args,
          world.environment,
          declared.required,
        ),
        world,
      ),
  }
}

export const commands: readonly RunnableCommand[] = [
  command(
    {
      name: 'serve',
      summary: 'Serve the API.',
      positionals: [],
      settings: ['host', 'port', 'store', 'first-token'],
    },
    serve,
  ),
  command(
    {
      name: 'migrate',
      summary: 'Prepare a PostgreSQL-protocol database, or bring it up to date.',
      positionals: [],
      settings: ['store', 'print'],
    },
    migrate,
  ),
  command(
    {
      name: 'copy',
      summary:
        'Copy all plants and tokens from one store to another, or go on with a copy that was interrupted.',
      positionals: [],
      settings: ['from', 'to'],
      required: ['from', 'to'],
    },
    copy,
  ),
  command(
    {
      name: 'token issue',
      summary: 'Issue a token and print it, this once.',
      positionals: [],
      settings: ['account', 'label', 'scopes', 'expires', 'store'],
      required: ['account'],
    },
    tokenIssue,
  ),
  command(
    {
      name: 'token list',
      summary: 'List tokens.',
      positionals: [],
      settings: ['account', 'json', 'store'],
    },
    tokenList,
  ),
  command(
    {
      name: 'token revoke',
      summary: 'Revoke a token: from the next request on, or within three seconds on PostgreSQL.',
      positionals: ['TOKEN-ID'],
      settings: ['store'],
    },
    tokenRevoke,
  ),
]

/** Exit code of a wrong command line, by convention. A command that fails later exits with 1. */
const usageExitCode = 2

/** Runs a command line and resolves to its exit code. */
export async function run(args: readonly string[], world: World): Promise<number> {
  const end = args.findIndex((arg) => arg.startsWith('-'))
  const words = end === -1 ? args : args.slice(0, end)
  if (args[0] === 'version' || args[0] === '--version' || args[0] === '-V')
    return print(world, version())
  if (args[0] === 'help') return help(words.slice(1), world)
  if (args.includes('--help') || args.includes('-h')) return help(words, world)
  const found = commandNamed(words)
  return found === undefined ? unknown(words, args, world) : await runCommand(found, args, world)
}

async function runCommand(
  { name, run: work }: RunnableCommand,
  args: readonly string[],
  world: World,
): Promise<number> {
  try {
    return await work(args.slice(name.split(' ').length), world)
  } catch (error) {
    if (error instanceof UsageProblems) {
      for (const problem of error.problems) world.tell(`plants: ${withoutSecrets(problem)}`)
      tellHelp(name.split(' '), world)
      return usageExitCode
    }
    const expected = error instanceof Refused
    world.tell(
      `plants: ${expected ? error.message : `a defect of this program: ${describe(error)}`}`,
    )
    return 1
  }
}

function commandNamed(words: readonly string[]): RunnableCommand | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
}

/** The commands that share a first word, such as "token". */
function group(words: readonly string[]): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${words[0]} `))
}

function help(words: readonly string[], world: World): number {
  const found = commandNamed(words)
  if (found !== undefined) return print(world, helpFor(found))
  if (words.length === 0) return print(world, overview(commands))
  if (words.length === 1 && group(words).length > 0) return print(world, overview(group(words)))
  return unknown(words, words, world)
}

/** Answers a command line that begins with no command, and suggests the nearest one. */
function unknown(words: readonly string[], args: readonly string[], world: World): number {
  const typed = words.length > 0 ? words.slice(0, 2) : args.slice(0, 1)
  const related = group(typed)
  const meant = nearestCommand(typed, related)
  // The first word of a group alone is not a mistake, only unfinished.
  if (typed.length > 0 && (typed.length > 1 || related.length === 0)) {
    const guess = meant === undefined ? '.' : `; did you mean "plants ${meant}"?`
    world.tell(`plants: ${withoutSecrets(quoted(typed.join(' ')))} is not a command${guess}`)
  }
  if (meant === undefined) world.tell(overview(related.length > 0 ? related : commands))
  else tellHelp([], world)
  return usageExitCode
}

/** Says how to get help, by a command that works when it is pasted. */
function tellHelp(words: readonly string[], { launcher, tell }: World): void {
  tell(`See: ${[launcher, ...words, '--help'].map(quotedForShell).join(' ')}`)
}

function nearestCommand(
  [first = '', second]: readonly string[],
  related: readonly Command[],
): string | undefined {
  const names = commands.map(({ name }) => name)
  const whole = second === undefined ? undefined : nearest(`${first} ${second}`, names)
  if (whole !== undefined || related.length > 0) return whole
  const firstWords = names.map((name) => name.replace(/ .*/, ''))
  return (
    nearest(first, [...firstWords, 'help', 'version', '--help', '--version']) ??
    // "plants list" leaves out what is listed.
    names.find((name) => name.endsWith(` ${first}`))
  )
}

/** Hides a token or a password that somebody typed in the wrong place. */
function withoutSecrets(text: string): string {
  return withoutPasswords(withoutTokens(text))
}

function print(world: World, text: string): number {
  world.print(text)
  return 0
}
