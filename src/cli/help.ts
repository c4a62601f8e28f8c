// The help texts, made from the tables of commands and settings, and commands to paste.

import packageJson from '../../package.json' with { type: 'json' }
import { type StoreLocation, storeUrl } from '../stores/location.ts'
import { type SettingName, settings } from './settings.ts'
import type { World } from './world.ts'

/** A command as the help shows it. */
export interface Command {
  readonly name: string
  readonly summary: string
  readonly positionals: readonly string[]
  readonly settings: readonly SettingName[]
  /** The settings that must be given. */
  readonly required?: readonly SettingName[]
}

export function version(): string {
  return packageJson.version
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
  const flags = command.settings.map((name) => [flagOf(name), explanation(name)] as const)
  const width = Math.max(...flags.map(([flag]) => flag.length))
  const lines = flags.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`)
  return [`Usage: plants ${usage(command)}`, '', command.summary, '', ...lines].join('\n')
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
  const { placeholder } = settings[name] as { placeholder?: string }
  return placeholder === undefined ? `--${name}` : `--${name} ${placeholder}`
}

function explanation(name: SettingName): string {
  const { help, variable } = settings[name] as { help: string; variable?: string }
  return variable === undefined ? help : `${help} [${variable}]`
}
