// The whole check, as `npm test` runs it: format and lint, types, the OpenAPI document, every test.
// It goes through all of them, whatever fails, and closes with one line that counts.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const runtime = fileURLToPath(new URL('./bun', import.meta.url))

interface Step {
  readonly name: string
  readonly command: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

const steps: readonly Step[] = [
  {
    name: 'format and lint',
    command: ['node_modules/.bin/biome', 'ci', '--error-on-warnings', '.'],
  },
  { name: 'types', command: ['node_modules/.bin/tsc', '--project', '.'] },
  {
    name: 'openapi.json',
    command: [
      runtime,
      'node_modules/@redocly/cli/bin/cli.js',
      'lint',
      '--extends',
      'recommended',
      'openapi.json',
    ],
  },
]

/** The lab is a package of its own, whose types are known once it is installed. CI installs it. */
const labTypes: Step = {
  name: 'types of the lab',
  command: ['node_modules/.bin/tsc', '--project', 'lab'],
}
const labIsExcused = !existsSync(`${root}lab/node_modules`) && !process.env['CI']

const testCommand = [runtime, 'test', '--timeout', '30000']
const asked = process.argv.slice(2)
const tests: Step = { name: 'tests', command: [...testCommand, ...asked] }

/**
 * What a client can see of the store, once more on the other one. The rest of the tests choose
 * their store themselves.
 */
const seenByClients = [
  'createPlant',
  'deletePlant',
  'listPlants',
  'authentication',
  'general',
  'leaks',
]
const testsOnPostgres: Step = {
  name: 'tests of the service on PostgreSQL',
  command: [
    ...testCommand,
    ...seenByClients.map((name) => `test/http/${name}.test.ts`),
    'test/properties',
  ],
  environment: { PLANTS_TEST_STORE: 'postgres' },
}

interface Outcome {
  readonly passed: boolean
  readonly output: string
}

/** Runs a step, showing its output as it comes where `live`, else only where it fails. */
function run({ command, environment }: Step, live: boolean): Promise<Outcome> {
  const [program = '', ...args] = command
  // Redocly must neither report its use nor look for a newer version.
  const quiet = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const child = spawn(program, args, {
    cwd: root,
    env: { ...process.env, ...quiet, ...environment },
  })
  let output = ''
  const take = (data: Buffer): void => {
    output += data
    if (live) process.stdout.write(data)
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ passed: false, output: String(error) }))
    child.on('close', (code) => resolve({ passed: code === 0, output }))
  })
}

/** The count in a closing line of the test runner, such as " 171 pass". */
function counted(output: string, word: string): number {
  return Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(output)?.[1] ?? 0)
}

let passed = 0
let failed = 0
for (const step of labIsExcused ? steps : [...steps, labTypes]) {
  const startedMs = performance.now()
  const outcome = await run(step, false)
  if (outcome.passed) passed += 1
  else failed += 1
  console.log(
    `${outcome.passed ? 'ok  ' : 'FAIL'} ${step.name} (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`,
  )
  if (!outcome.passed) console.log(outcome.output)
}

let skipped = 0
if (labIsExcused) {
  skipped += 1
  console.log(`skip ${labTypes.name}: npm ci --prefix lab installs it`)
}
for (const step of asked.length > 0 ? [tests] : [tests, testsOnPostgres]) {
  console.log(`\n${step.name}`)
  const outcome = await run(step, true)
  passed += counted(outcome.output, 'pass')
  failed += counted(outcome.output, 'fail')
  skipped += counted(outcome.output, 'skip')
  // A runner that broke down without counting a failure has failed all the same.
  if (!outcome.passed && counted(outcome.output, 'fail') === 0) failed += 1
}

console.log(`\n${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`)
process.exit(failed === 0 ? 0 : 1)
