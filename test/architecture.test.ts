// The rules of the house that a compiler does not check. Each failure says what to do instead.
import { describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { Glob } from 'bun'
import { temporaryFolder } from './support/service.ts'

const sources = new Map(
  [...new Glob('src/**/*.{ts,js}').scanSync()]
    .sort()
    .map((path) => [path, readFileSync(path, 'utf8')]),
)

/** The room of a file: its folder under src, or the file itself where it stands alone. */
function roomOf(path: string): string {
  return path
    .replace(/^src\//, '')
    .replace(/^(stores\/[^/]+|[^/]+)\/.*$/, '$1')
    .replace(/\.ts$/, '')
}

/** Which rooms a room may import, beside itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  main: ['cli', 'clock', 'refused'],
  cli: ['clock', 'contract', 'domain', 'log', 'refused', 'service', 'stores'],
  service: ['clock', 'domain', 'http', 'log', 'metrics', 'stores'],
  http: ['clock', 'contract', 'domain', 'log', 'refused'],
  contract: ['domain'],
  stores: ['clock', 'domain', 'refused', 'stores/postgres', 'stores/sqlite'],
  'stores/sqlite': ['clock', 'domain', 'refused', 'stores'],
  'stores/postgres': ['clock', 'domain', 'refused', 'stores'],
  domain: [],
  log: ['clock'],
  metrics: ['clock', 'contract', 'domain', 'log'],
  clock: [],
  refused: [],
}

function importsOf(path: string, text: string): string[] {
  const specifiers = [
    ...text.matchAll(/(?:from|import)\s+'(\.[^']+)'|new URL\('(\.[^']+\.ts)'/g),
  ].map(([, imported, located]) => imported ?? located ?? '')
  return specifiers.map((specifier) => normalize(join(path, '..', specifier)))
}

describe('imports', () => {
  test.each([...sources.keys()])('of %s keep to the arrows', (path) => {
    const room = roomOf(path)
    const others = importsOf(path, sources.get(path) ?? '')
      .filter((imported) => imported.startsWith('src/'))
      .map(roomOf)
      .filter((other) => other !== room)
    const wrong = others.filter((other) => !allowed[room]?.includes(other))
    const advice = `${path}: the room ${room} may import ${allowed[room]?.join(', ') || 'no other room'}; let src/service.ts hand in what it needs, or move the code to the room it belongs to`
    expect(wrong, advice).toEqual([])
  })

  test('of the lab enter src through its public doors', () => {
    const doors = /^src\/(?:service|clock|stores\/open|stores\/location|domain\/\w+)\.ts$/
    const files = [...new Glob('lab/**/*.{ts,js}').scanSync()].filter(
      (path) => !path.includes('node_modules/'),
    )
    const wrong = files.flatMap((path) =>
      importsOf(path, readFileSync(path, 'utf8'))
        .filter((imported) => imported.startsWith('src/') && !doors.test(imported))
        .map((imported) => `${path}: ${imported}`),
    )
    expect(files).not.toBeEmpty()
    expect(wrong, 'start bin/plants, or take it from src/stores/open.ts instead').toEqual([])
  })

  test('of src and test never name the lab', () => {
    const files = [...new Glob('{src,test}/**/*.{ts,js}').scanSync()]
    const wrong = files.filter((path) =>
      importsOf(path, readFileSync(path, 'utf8')).some((imported) => imported.startsWith('lab/')),
    )
    expect(wrong, 'let the lab import from test/support instead').toEqual([])
  })

  test('go no way round: no cycle between files', () => {
    const state = new Map<string, 'open' | 'done'>()
    const visit = (path: string, way: readonly string[]): void => {
      if (state.get(path) === 'done') return
      expect(state.get(path), `a cycle: ${[...way, path].join(' -> ')}`).toBeUndefined()
      state.set(path, 'open')
      for (const imported of importsOf(path, withoutTypeImports(sources.get(path) ?? '')))
        if (sources.has(imported)) visit(imported, [...way, path])
      state.set(path, 'done')
    }
    for (const path of sources.keys()) visit(path, [])
  })
})

function withoutTypeImports(text: string): string {
  return text.replace(/^import type .*$/gm, '')
}

describe('absences', () => {
  const absences: readonly [
    rule: string,
    pattern: RegExp,
    inside: (path: string) => boolean,
    instead: string,
  ][] = [
    [
      'SQL outside the stores',
      /\b(?:select|insert into|delete from|update) [a-z_]+ |pragma [a-z]/,
      (path) => !path.startsWith('src/stores/'),
      'ask the store',
    ],
    [
      'HTTP words in the domain',
      /\b(?:http|Response|Headers?|Bearer|Authorization|status code)\b/i,
      (path) => path.startsWith('src/domain/'),
      'throw a Failure',
    ],
    [
      'the process outside main.ts',
      /\bprocess\.[a-z]/,
      (path) => path !== 'src/main.ts',
      'take it from the World that main.ts hands over',
    ],
    [
      'Bun outside http/server.ts',
      /\bBun\.|from 'bun/,
      (path) => path !== 'src/http/server.ts',
      "use Node's modules",
    ],
    [
      'status codes outside the contract',
      /status: [1-5]\d\d\b/,
      (path) => !path.startsWith('src/contract/'),
      'name the refusal, or take it from the operation',
    ],
    [
      'the driver outside its store',
      /from 'node:sqlite'/,
      (path) => !path.startsWith('src/stores/sqlite/'),
      'ask the store',
    ],
    [
      'PostgreSQL driver outside its store',
      /from 'pg'/,
      (path) => !path.startsWith('src/stores/postgres/'),
      'ask the store',
    ],
    [
      'chance outside main.ts',
      /Math\.random\(|import .*\brandomBytes\b/,
      (path) => path !== 'src/main.ts',
      'take randomBytes as a parameter',
    ],
    ['any', /\bany\b(?=[\])>;,]| =)|: any\b|as any\b/, () => true, 'name the type, or unknown'],
    [
      'work left for later',
      /\b(?:TODO|FIXME|XXX|HACK)\b/,
      () => true,
      'do it, or leave it to an issue',
    ],
  ]

  test.each(absences)('there is no %s', (rule, pattern, inside, instead) => {
    const found = [...sources]
      .filter(
        ([path, text]) =>
          inside(path) && pattern.test(text.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')),
      )
      .map(([path]) => path)
    expect(found, `${rule}: ${instead} instead`).toEqual([])
  })

  test('there is no file of odds and ends', () => {
    expect(
      [...sources.keys()].filter((path) =>
        /\/(?:utils?|helpers?|common|misc|manager|types|index|shared)\.ts$/.test(path),
      ),
    ).toEqual([])
  })

  test('each file says at its top what it does', () => {
    expect(
      [...sources].filter(([, text]) => !text.startsWith('// ')).map(([path]) => path),
    ).toEqual([])
  })
})

describe('time', () => {
  const violations: Readonly<Record<string, string>> = {
    'Date.ts': 'export const now = Date.now()',
    'performance.ts': 'export const now = performance.now()',
    'setTimeout.ts': 'setTimeout(() => {}, 1)',
    'setInterval.ts': 'setInterval(() => {}, 1)',
    'Atomics.ts': 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)',
    'globalThis.ts': 'globalThis.setTimeout(() => {}, 1)',
    'timers.ts': "import 'node:timers'",
    'promises.ts': "import 'node:timers/promises'",
    'perf_hooks.ts': "import 'node:perf_hooks'",
  }

  test('comes from the clock that is handed in: the linter finds each way round it', () => {
    const folder = temporaryFolder()
    try {
      mkdirSync(join(folder, 'src'))
      copyFileSync('biome.json', join(folder, 'biome.json'))
      for (const [name, text] of Object.entries(violations))
        writeFileSync(join(folder, 'src', name), text)
      writeFileSync(
        join(folder, 'src', 'clock.ts'),
        Object.values(violations).slice(0, 6).join('\n'),
      )
      const { stdout } = Bun.spawnSync(
        [join(process.cwd(), 'node_modules/.bin/biome'), 'lint', '--reporter=github'],
        { cwd: folder },
      )
      const found = stdout.toString().matchAll(/^::error .*noRestricted.*?\/src\/([^,]+),/gm)
      expect([...found].map(([, name]) => name).sort()).toEqual(Object.keys(violations).sort())
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('dependencies', () => {
  const { dependencies, devDependencies, overrides } = JSON.parse(
    readFileSync('package.json', 'utf8'),
  )

  test('are pinned exactly, and each has its line in a decision record', () => {
    const decisions = [...new Glob('docs/decisions/*.md').scanSync()]
      .map((path) => readFileSync(path, 'utf8'))
      .join('\n')
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      expect(version).toMatch(/^\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?$/)
      expect(decisions, `${name} needs a line that says why`).toContain(`\`${name}\``)
    }
  })

  test('of the reference page are all left out, because its build for browsers holds them already', () => {
    const scalar = JSON.parse(
      readFileSync('node_modules/@scalar/api-reference/package.json', 'utf8'),
    )
    expect(Object.keys(overrides['@scalar/api-reference']).sort()).toEqual(
      Object.keys(scalar.dependencies).sort(),
    )
  })

  test.each(['package-lock.json', 'lab/package-lock.json'])('name no registry in %s', (path) => {
    expect(readFileSync(path, 'utf8')).not.toMatch(/"resolved": "http/)
  })
})
