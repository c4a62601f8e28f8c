// Runs the programs in README.md, as they stand there, against a real service.
import { describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { withService } from './support/service.ts'

/** The one program of a language in README.md. */
function program(language: string): string {
  const [found, ...others] = [
    ...readFileSync('README.md', 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms),
  ].filter(([, name]) => name === language)
  expect(others).toEqual([])
  return found?.[2] ?? ''
}

async function output(
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const [name = '', ...args] = command
  const child = spawn(name, args, {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let out = ''
  child.stdout.on('data', (data) => {
    out += data
  })
  expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0)
  return out
}

const bun = (code: string): string[] => ['scripts/bun', '-e', code]
const programs: readonly [string, string, (code: string) => string[], string | null][] = [
  ['JavaScript', 'js', bun, ''],
  ['JavaScript without JSON.rawJSON', 'js', (code) => bun(`delete JSON.rawJSON\n${code}`), ''],
  [
    'JavaScript on Node',
    'js',
    (code) => ['node', '--input-type=module', '-e', code],
    Bun.which('node'),
  ],
  ['Python', 'python', (code) => ['python3', '-c', code], Bun.which('python3')],
]

describe('the program of the README', () => {
  test.each(programs.filter(([, , , runtime]) => runtime !== null))(
    'in %s keeps an id above 2^53 exactly',
    (_name, language, command) =>
      withService(async (service) => {
        const token = await service.tokenFor('a')
        // If the program rounded its id, it would find it taken.
        await service.call('POST', '/plants', {
          token,
          body: '{"id":9007199254740992,"name":"in the way"}',
        })
        const code = program(language).replaceAll('http://127.0.0.1:8080', service.url)
        expect(await output(command(code), { PLANTS_TOKEN: token })).toBe(
          [
            '200 {"name":"Welwitschia","tag":"desert"}',
            '200 [{"name":"in the way"},{"name":"Welwitschia","tag":"desert"}]',
            '204 \n',
          ].join('\n'),
        )
      }),
  )
})
