// The operator's door: which commands there are, what each takes, and what runs it.
import { readSettings, type SettingName, UsageProblems } from '../config.ts'
import { CopyRefused } from '../domain/copyStore.ts'
import { withoutTokens } from '../domain/token.ts'
import { describe } from '../log.ts'
import { isRefusal } from '../service.ts'
import { withoutPasswords } from '../storeLocation.ts'
import { copy } from './copy.ts'
import { type Command, helpFor, overview, version } from './help.ts'
import { migrate } from './migrate.ts'
import { serve } from './serve.ts'
import { tokenIssue, tokenList, tokenRevoke } from './tokens.ts'
import type { World } from './world.ts'

interface RunnableCommand extends Command {
  /** Resolves to the exit code. */
  readonly run: (args: readonly string[], world: World) => Promise<number>
}

function command<const Names extends SettingName>(
  declared: Omit<Command, 'settings' | 'required'> & {
    readonly settings: readonly Names[]
    readonly required?: readonly Names[]
  },
  run: (parsed: ReturnType<typeof readSettings<Names>>, world: World) => Promise<number>,
): RunnableCommand {
  return {
    ...declared,
    run: (args, world) =>
      run(readSettings(declared.settings, declared.positionals, args, world.environment, declared.required), world),
  }
}

export const commands: readonly RunnableCommand[] = [
  command(
    { name: 'serve', summary: 'Serve the API.', positionals: [], settings: ['host', 'port', 'store', 'first-token'] },
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
      summary: 'Copy all plants and tokens from one store to another, or go on with a copy that was interrupted.',
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
  command({ name: 'token list', summary: 'List tokens.', positionals: [], settings: ['account', 'json', 'store'] }, tokenList),
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

/** Exit code of a command line that is wrong, by convention; 1 is for what was refused while it ran. */
const usageExitCode = 2

/** Runs a command line and resolves to its exit code. */
export async function run(args: readonly string[], world: World): Promise<number> {
  const found = commands.find(({ name }) => name.split(' ').every((word, index) => args[index] === word))
  const rest = args.slice(found?.name.split(' ').length ?? 0)
  if (rest.includes('--help') || rest.includes('-h'))
    return print(world, found === undefined ? overview(commands) : helpFor(found))
  if (found === undefined) return withoutCommand(args, world)
  try {
    return await found.run(rest, world)
  } catch (error) {
    if (error instanceof UsageProblems) {
      for (const problem of error.problems) world.tell(`plants: ${withoutSecrets(problem)}`)
      world.tell(`See "plants ${found.name} --help".`)
      return usageExitCode
    }
    const expected = isRefusal(error) || error instanceof CopyRefused
    world.tell(`plants: ${expected ? error.message : `a defect of this program: ${describe(error)}`}`)
    return 1
  }
}

function withoutCommand(args: readonly string[], world: World): number {
  if (args[0] === '--version' || args[0] === '-V') return print(world, version())
  if (args.length > 0) world.tell(`plants: ${withoutSecrets(JSON.stringify(args.join(' ')))} is not a command.`)
  world.tell(overview(commands))
  return usageExitCode
}

/** What somebody typed may hold a token or a password in the wrong place; it is not repeated. */
function withoutSecrets(text: string): string {
  return withoutPasswords(withoutTokens(text))
}

function print(world: World, text: string): number {
  world.print(text)
  return 0
}
