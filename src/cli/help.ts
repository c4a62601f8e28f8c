// The help texts, made from the tables of commands and settings, and commands to paste.

import { type StoreLocation, storeUrl } from '../stores/location.ts'
import { type SettingName, settings } from './settings.ts'
import type { World } from './world.ts'

/** A command: what the help shows of it, and how it is run. */
export interface Command {
  readonly name: string
  readonly summary: string
  readonly positionals: readonly string[]
  readonly settings: readonly SettingName[]
  /** The settings that must be given. */
  readonly required?: readonly SettingName[]
  /** Reads its settings, does the work and resolves to the exit code. Throws UsageProblems. */
  readonly run: (args: readonly string[], world: World) => Promise<number>
}

export function overview(commands: readonly Command[]): string {
  const lines = commands.map((command) => `  plants ${usage(command)}\n      ${command.summary}`)
  return [
    'Usage:',
    ...lines,
    '  plants help [COMMAND] | version',
    '',
    'Each command explains itself: plants COMMAND --help',
  ].join('\n')
}

export function helpFor(command: Command): string {
  const width = Math.max(...command.settings.map((name) => flagOf(name).length))
  const lines = command.settings.map((name) => {
    const { help, variable } = settings[name]
    return `  ${flagOf(name).padEnd(width)}  ${help}${variable === undefined ? '' : ` [${variable}]`}`
  })
  const flags = lines.length === 0 ? [] : ['', ...lines]
  return [`Usage: plants ${usage(command)}`, '', command.summary, ...flags].join('\n')
}

/** A command on a store that works when it is pasted into a shell in any folder. */
export function commandToPaste(
  { launcher }: Pick<World, 'launcher'>,
  words: readonly string[],
  store: StoreLocation,
): string {
  return [launcher, ...words, '--store', storeUrl(store)].map(quotedForShell).join(' ')
}

export function quotedForShell(word: string): string {
  return /^[\w%+,./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

function usage({ name, positionals, settings: names, required = [] }: Command): string {
  const flags = names.map((setting) =>
    required.includes(setting) ? flagOf(setting) : `[${flagOf(setting)}]`,
  )
  return [name, ...positionals, ...flags].join(' ')
}

function flagOf(name: SettingName): string {
  const { placeholder } = settings[name]
  return placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`
}
