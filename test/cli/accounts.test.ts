// `plants account list` and `delete`, which asks first; `plants account export` and `import`: every
// text and id exactly, in both formats; bad lines by their number; and a second time that changes
// nothing.
import { describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { csvHeader, type PlantFormat, plantsText, readPlants } from '../../src/cli/plantFormats.ts'
import type { IdentifiedPlant } from '../../src/domain/plant.ts'
import { until } from '../support/clock.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { type Finished, launcher, run, serve, start, tokenFor } from '../support/process.ts'
import { call, folderMaker } from '../support/service.ts'
import { fill, plant, prepare, withStore } from '../support/stores.ts'

const newFolder = folderMaker()

/** Texts that are easily changed on the way. */
const hard = [
  plant(-(2n ** 63n), { name: '' }),
  plant(-1, { name: '', tag: '' }),
  plant(0, { name: '"', tag: '""' }),
  plant(1, { name: 'a,b', tag: ',' }),
  plant(2, { name: 'two\r\nlines\r\n', tag: '\n' }),
  plant(3, { name: '\r', tag: 'x\r' }),
  plant(4, { name: ' kept ', tag: '\t' }),
  plant(5, { name: '\ufeffmark', tag: '\u2028\u0001\u007f\\' }),
  plant(6, { name: '\u{1f335}\u{1f468}\u200d\u{1f33e} e\u0301', tag: '=1+1' }),
  plant(7, { name: 'null', tag: 'NULL' }),
  plant(8, { name: '"'.repeat(500_000), tag: '\n'.repeat(10_000) }),
  plant(9_007_199_254_740_993n),
  plant(2n ** 63n - 1n, { tag: 'last' }),
]

/** A folder with a store, plants.db, in which the accounts "a" and "b" have tokens. */
async function folderWith(plants: Parameters<typeof fill>[2]): Promise<string> {
  const folder = newFolder()
  await fill(`sqlite:${folder}/plants.db`, 'a', plants)
  await fill(`sqlite:${folder}/plants.db`, 'b', [])
  return folder
}

function plantsOf(folder: string, account: string): Promise<readonly IdentifiedPlant[]> {
  return withStore(`sqlite:${folder}/plants.db`, async (store) => {
    const { plants } = await store.kept.plants(account, { limit: 1e6, textMax: 1e9 })
    return plants.map(({ id, name, tag }) => ({ id, name, tag }))
  })
}

const withoutKeys = (plants: readonly IdentifiedPlant[]): readonly IdentifiedPlant[] =>
  plants.map(({ id, name, tag }) => ({ id, name, tag }))

function accountExport(folder: string, account: string, ...more: string[]): Promise<Finished> {
  return run(['account', 'export', '--account', account, ...more], folder)
}

function accountImport(folder: string, ...more: string[]): Promise<Finished> {
  return run(['account', 'import', '--account', 'b', ...more], folder)
}

describe('plants account list', () => {
  test('shows each account with its plants, its tokens and its last use', async () => {
    const folder = await folderWith([plant(1), plant(2), plant(3)])
    await run(['token', 'issue', '--account', 'b'], folder)
    const used = await tokenFor('c d', folder)
    const server = serve(folder)
    expect((await call(await server.url, 'GET', '/plants', { token: used })).status).toBe(200)
    server.process.kill('SIGTERM')
    await server.finished
    const [, listed] =
      /^(\S+)/m.exec(
        (await run(['token', 'list', '--account', 'b'], folder)).out.split('\n')[1] ?? '',
      ) ?? []
    await run(['token', 'revoke', listed ?? ''], folder)

    const { code, out, err } = await run(['account', 'list'], folder)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(
      /^ACCOUNT {2}PLANTS {2}ACTIVE TOKENS {2}LAST USED\na {8}3 {7}1 of 1 {9}never\nb {8}0 {7}1 of 2 {9}never\nc d {6}0 {7}1 of 1 {9}\d{4}-\d\d-\d\d \d\dh\n$/,
    )
    const json = JSON.parse((await run(['account', 'list', '--json'], folder)).out)
    expect(json[1]).toEqual({
      account: 'b',
      plants: 0,
      activeTokens: 1,
      tokens: 2,
      lastUsedAt: null,
    })
  }, 30_000)

  test('of a store without tokens says how to make an account', async () => {
    const folder = newFolder()
    await withStore(`sqlite:${folder}/plants.db`, async () => {})
    const { code, out } = await run(['account', 'list'], folder)
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(
        /^There are no accounts\. A token makes one: .* token issue --account NAME /,
      ),
    ])
    expect((await run(['account', 'list', '--json'], folder)).out).toBe('[]\n')
  })
})

describe('plants account delete', () => {
  const many = Array.from({ length: 2500 }, (_, id) => plant(id))

  /** Runs the command on a terminal, and types this when it asks. */
  async function onTerminal(
    folder: string,
    answer: string,
  ): Promise<{ code: number; shown: string }> {
    let shown = ''
    const running = Bun.spawn([launcher, 'account', 'delete', '--account', 'a'], {
      cwd: folder,
      terminal: {
        data: (terminal, data) => {
          const before = shown
          shown += Buffer.from(data)
          if (shown.includes('to go on: ') && !before.includes('to go on: ')) terminal.write(answer)
        },
      },
    })
    return { code: await running.exited, shown }
  }

  test.each(['sqlite', 'postgres'])(
    'revokes its tokens, deletes its plants, and leaves others alone (%s)',
    async (kind) => {
      const folder = newFolder()
      const url =
        kind === 'sqlite'
          ? `sqlite:${folder}/plants.db`
          : await (await sharedPostgres()).createDatabase(`delete_${process.pid}`)
      if (kind === 'postgres') await prepare(url)
      await fill(url, 'a', many)
      await fill(url, 'b', [plant(1)])
      const args = ['account', 'delete', '--account', 'a', '--yes', '--store', url]
      const { code, out } = await run(args, folder)
      expect(code).toBe(0)
      expect(out).toMatch(
        /^The account a of \S+ has no plants any more \(2500 deleted\), and its tokens are revoked\.\n$/,
      )
      const listed = JSON.parse(
        (await run(['account', 'list', '--json', '--store', url], folder)).out,
      )
      expect(listed).toEqual([
        { account: 'a', plants: 0, activeTokens: 0, tokens: 1, lastUsedAt: null },
        { account: 'b', plants: 1, activeTokens: 1, tokens: 1, lastUsedAt: null },
      ])
      expect((await run(args, folder)).out).toContain('(0 deleted)')
    },
    60_000,
  )

  test('asks for the name on a terminal, and does nothing without it', async () => {
    const folder = await folderWith([plant(1)])
    expect(await onTerminal(folder, '\u0003')).toEqual({
      code: 130,
      shown: expect.stringMatching(/Interrupted\.\s*$/),
    })
    for (const answer of ['\n', 'b\n', 'yes\n', '\u0004']) {
      const { code, shown } = await onTerminal(folder, answer)
      expect(code).toBe(1)
      expect(shown).toContain('deletes its 1 plant. Type its name to go on: ')
      expect(shown).toContain('That is not its name; nothing was changed.')
    }
    expect(await plantsOf(folder, 'a')).toHaveLength(1)
    expect((await onTerminal(folder, 'a\n')).code).toBe(0)
    expect(await plantsOf(folder, 'a')).toHaveLength(0)
  }, 30_000)

  test('asks nobody if there is no terminal, and then needs --yes', async () => {
    const folder = await folderWith([plant(1)])
    const { code, out, err } = await run(['account', 'delete', '--account', 'a'], folder)
    expect([code, out]).toEqual([2, ''])
    expect(err).toStartWith('plants: --yes is missing, and there is no terminal on which to ask.\n')
    expect(await plantsOf(folder, 'a')).toHaveLength(1)
    const unknown = await run(['account', 'delete', '--account', 'x', '--yes'], folder)
    expect([unknown.code, unknown.err]).toEqual([1, expect.stringContaining('has no account "x"')])
  })
})

describe('plants account export', () => {
  test('writes lines that the API takes as they are', async () => {
    const folder = await folderWith(hard)
    const token = await tokenFor('c', folder)
    const { code, out, err } = await accountExport(folder, 'a')
    expect(code).toBe(0)
    expect(err).toEndWith(`${hard.length} plants of the account a written.\n`)
    const lines = out.trimEnd().split('\n')
    expect(lines[1]).toBe('{"id":-1,"name":"","tag":""}')
    expect(lines.at(-1)).toBe(
      '{"id":9223372036854775807,"name":"plant 9223372036854775807","tag":"last"}',
    )
    const server = serve(folder)
    for (const body of lines)
      expect((await call(await server.url, 'POST', '/plants', { token, body })).status).toBe(200)
    server.process.kill('SIGTERM')
    await server.finished
    expect((await accountExport(folder, 'c')).out).toBe(out)
  }, 60_000)

  test('writes CSV as in RFC 4180, and tells no tag from an empty one', async () => {
    const folder = await folderWith([
      plant(1, { name: 'a "b", c', tag: null }),
      plant(2, { name: 'x', tag: '' }),
      plant(3, { name: 'y', tag: 'z' }),
    ])
    const { out } = await accountExport(folder, 'a', '--format', 'csv')
    expect(out).toBe('id,name,tag\r\n1,"a ""b"", c",\r\n2,x,""\r\n3,y,z\r\n')
  })

  test('waits for a slow reader, and ends if its reader leaves', async () => {
    const plants = Array.from({ length: 5000 }, (_, id) => plant(id, { name: 'n'.repeat(1000) }))
    const folder = await folderWith(plants)
    const whole = (await accountExport(folder, 'a')).out
    const args = ['account', 'export', '--account', 'a']
    const slow = spawn(launcher, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
    await Bun.sleep(1000)
    let out = ''
    for await (const data of slow.stdout) {
      out += data
      if (out.length < 500_000) await Bun.sleep(10)
    }
    expect(out === whole).toBe(true)

    const left = spawn('sh', ['-c', `"${launcher}" ${args.join(' ')} | head -c 1`], { cwd: folder })
    let first = ''
    for await (const data of left.stdout) first += data
    expect(first).toBe('{')
  }, 60_000)

  test.skipIf(process.platform !== 'linux')('says that it could not write all', async () => {
    const folder = await folderWith([plant(1)])
    const child = spawn(launcher, ['account', 'export', '--account', 'a'], {
      cwd: folder,
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    })
    let err = ''
    for await (const data of child.stderr as NodeJS.ReadableStream) err += data
    expect(err).toContain('plants: The output cannot be written: ')
    await until('it has ended', () => child.exitCode !== null)
    expect(child.exitCode).toBe(1)
  })
})

describe('plants account import', () => {
  test('ends at a request to stop while it waits for its input, and keeps what it has', async () => {
    const folder = await folderWith([])
    for (const [id, signal] of [
      [1, 'SIGINT'],
      [2, 'SIGTERM'],
    ] as const) {
      const waiting = spawn(launcher, ['account', 'import', '-', '--account', 'b'], { cwd: folder })
      let err = ''
      waiting.stderr.on('data', (data) => {
        err += data
      })
      waiting.stdin.write(`{"id":${id},"name":"x"}\n`)
      await until('the line is imported', async () => (await plantsOf(folder, 'b')).length === id)
      waiting.kill(signal)
      const code = await new Promise((resolve) => waiting.on('close', resolve))
      expect(code).toBe({ SIGINT: 130, SIGTERM: 143 }[signal])
      expect(err).toContain('Interrupted.\nWhat was imported is kept; run the same command again')
    }
  }, 30_000)

  test.each(['ndjson', 'csv'] as const)(
    'takes what was exported as %s, exactly',
    async (format) => {
      const folder = await folderWith(hard)
      const file = join(folder, `plants.${format}`)
      const { out } = await accountExport(folder, 'a', '--format', format)
      writeFileSync(file, out)
      const { code, out: told } = await accountImport(folder, file)
      expect([code, told]).toEqual([
        0,
        `${hard.length} plants created in the account b of sqlite:${folder}/plants.db, 0 there already, 0 with an id that is taken, 0 bad lines.\n`,
      ])
      expect(await plantsOf(folder, 'b')).toEqual(withoutKeys(hard))
      expect((await accountExport(folder, 'b', '--format', format)).out === out).toBe(true)
      const again = await accountImport(folder, file)
      expect([again.code, again.out]).toEqual([
        0,
        expect.stringContaining(`0 plants created in the account b of`),
      ])
      expect(again.out).toContain(`${hard.length} there already`)
    },
    60_000,
  )

  test('works between a file and a database, and through a pipe beside a server', async () => {
    const folder = await folderWith(hard)
    const database = await (await sharedPostgres()).createDatabase(`import_${process.pid}`)
    await prepare(database)
    await fill(database, 'b', [])
    const server = serve(folder)
    await server.url
    const pipe = `"${launcher}" account export --account a | "${launcher}" account import - --account b --store '${database}'`
    const child = spawn('sh', ['-c', pipe], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })
    let out = ''
    for await (const data of child.stdout) out += data
    expect(out).toStartWith(`${hard.length} plants created in the account b of postgres://`)
    const [one, other] = [
      await accountExport(folder, 'a'),
      await accountExport(folder, 'b', '--store', database),
    ]
    expect(other.out === one.out).toBe(true)
    server.process.kill('SIGTERM')
    await server.finished
  }, 60_000)

  const badLines: readonly [PlantFormat, string, readonly string[]][] = [
    [
      'ndjson',
      [
        '{"id":1,"name":"one"}',
        'no JSON',
        '',
        '{"id":9223372036854775808,"name":"x"}',
        '{"id":2}',
        '{"id":3,"name":"x\\u0000"}',
        '{"id":4,"name":"\\ud800"}',
        '{"id":1,"name":"another"}',
        '[]',
        '{"id":5,"name":"x","tag":null}',
        `{"id":6,"name":"${'x'.repeat(1024 * 1024 + 20)}"}`,
        '{"id":8,"id":9,"name":"x"}',
        '{"id":2,"name":"two","more":{"x":1}}\r',
        '{"id":10,"name":"last, without an end of its line"}',
      ].join('\n'),
      [
        'line 2: The body must be valid JSON.',
        'line 4: id must be an integer between -9223372036854775808 and 9223372036854775807.',
        'line 5: name is missing.',
        'line 6: name must not contain the character U+0000.',
        'line 7: name must not contain a lone surrogate.',
        'line 8: id 1 is already taken by another plant, which was not changed.',
        'line 9: The line must be a JSON object, not an array.',
        'line 10: tag must be a string, not null.',
        'line 11: The line must not exceed 1048576 bytes.',
        'line 12: The body holds the member "id" more than once in one object.',
      ],
    ],
    [
      'csv',
      [
        '\ufeff"id","name","tag"',
        '1,one,',
        'x,name,',
        '1.0,name,',
        '1,another,',
        '3,too few',
        '3,one,too,many',
        '3,a "quote" within,',
        '"3,"x",',
        '3,"x"y,',
        '3,"nul \0",',
        `3,${'\u0001'.repeat(200_000)},`,
        '',
        '"2","two\nlines",""\r',
        '10,after,',
        '4,"left open,',
        '5,swallowed,',
      ].join('\n'),
      [
        'line 3: id must be an integer between -9223372036854775808 and 9223372036854775807, in plain decimal digits.',
        'line 4: id must be an integer between',
        'line 5: id 1 is already taken by another plant, which was not changed.',
        'line 6: The line must have the three fields id, name and tag, not 2.',
        'line 7: The line must have the three fields id, name and tag, not 4.',
        'line 8: The line must be CSV as in RFC 4180: ',
        'line 9: The line must be CSV as in RFC 4180: ',
        'line 10: The line must be CSV as in RFC 4180: ',
        'line 11: name must not contain the character U+0000.',
        'line 12: The plant must not exceed 1048576 bytes as JSON.',
        'line 17: The line must be CSV as in RFC 4180: ',
      ],
    ],
  ]

  test.each(badLines)(
    'reports each bad line of %s by its number and takes the others',
    async (format, text, sentences) => {
      const folder = await folderWith([])
      await fill(`sqlite:${folder}/plants.db`, 'b', [plant(1, { name: 'one' })])
      const file = join(folder, `bad.${format}`)
      writeFileSync(file, text)
      const dry = await accountImport(folder, file, '--dry-run')
      expect([dry.code, dry.out]).toEqual([1, expect.stringContaining('2 plants to create in the')])
      expect(dry.out).toEndWith('Nothing was changed.\n')
      expect(await plantsOf(folder, 'b')).toHaveLength(1)
      for (let time = 0; time < 2; time += 1) {
        const { code, out, err } = await accountImport(folder, file)
        expect([code, out]).toEqual([
          1,
          `${time === 0 ? '2 plants' : '0 plants'} created in the account b of sqlite:${folder}/plants.db, ${time === 0 ? 1 : 3} there already, 1 with an id that is taken, ${sentences.length - 1} bad lines.\n`,
        ])
        const told = err.split('\n').filter((line) => line.startsWith('line '))
        expect(told.map((line, n) => line.slice(0, sentences[n]?.length))).toEqual([...sentences])
        expect(dry.err).toContain(told.join('\n'))
      }
      expect((await plantsOf(folder, 'b')).map(({ id, name }) => [id, name])).toEqual([
        [1n, 'one'],
        [2n, format === 'csv' ? 'two\nlines' : 'two'],
        [10n, format === 'csv' ? 'after' : 'last, without an end of its line'],
      ])
    },
    60_000,
  )

  test.each([
    ['SIGKILL', null],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)(
    'goes on where %s interrupted it',
    async (signal, exitCode) => {
      const count = 100_000
      const folder = await folderWith([])
      const plants = Array.from({ length: count }, (_, id) => plant(id, { name: 'n'.repeat(300) }))
      writeFileSync(join(folder, 'plants.ndjson'), plantsText(plants, 'ndjson'))
      const importing = start(['account', 'import', 'plants.ndjson', '--account', 'b'], folder)
      const imported = (): Promise<number> =>
        withStore(`sqlite:${folder}/plants.db`, async (store) => store.kept.countPlants('b'))
      await until('some are imported', async () => (await imported()) > 1000)
      importing.process.kill(signal)
      const { code, out, err } = await importing.finished
      expect([code, out]).toEqual([exitCode, ''])
      if (signal !== 'SIGKILL')
        expect(err).toEndWith(
          'Interrupted.\nWhat was imported is kept; run the same command again to go on.\n',
        )
      const there = await imported()
      expect(there).toBeLessThan(count)
      const again = await accountImport(folder, 'plants.ndjson')
      expect([again.code, again.out]).toEqual([
        0,
        `${count - there} plants created in the account b of sqlite:${folder}/plants.db, ${there} there already, 0 with an id that is taken, 0 bad lines.\n`,
      ])
    },
    60_000,
  )

  test('refuses with a sentence what it cannot do, and changes nothing', async () => {
    const folder = await folderWith([])
    writeFileSync(join(folder, 'headless.csv'), '1,one,\n')
    writeFileSync(join(folder, 'empty.csv'), '')
    writeFileSync(join(folder, 'one.ndjson'), '{"id":1,"name":"one"}\n')
    const header =
      'plants: A file in CSV must begin with the line id,name,tag; nothing was imported.'
    for (const [args, code, sentence] of [
      [['headless.csv'], 1, header],
      [['empty.csv'], 1, header],
      [['one.ndjson', '--format', 'csv'], 1, header],
      [['none.csv'], 1, 'plants: none.csv cannot be read: there is no such file.'],
      [['.'], 1, 'plants: . cannot be read: it is a folder.'],
      [['one.ndjson', '--store', 'sqlite:no.db'], 1, 'no.db cannot be used: there is no such file'],
      [['one.ndjson', '--format', 'xml'], 2, '--format must be ndjson or csv, not "xml".'],
      [[], 2, 'FILE is missing.'],
    ] as const) {
      const refused = await accountImport(folder, ...args)
      expect([refused.code, refused.out]).toEqual([code, ''])
      expect(refused.err).toContain(sentence)
    }
    const problems = await run(['account', 'import', '--format', 'xml'], folder)
    expect(problems.err).toStartWith(
      'plants: --account is missing.\nplants: --format must be ndjson or csv, not "xml".\nplants: FILE is missing.\n',
    )
    for (const command of [['import', 'one.ndjson'], ['export']]) {
      const nobody = await run(['account', ...command, '--account', 'nobody'], folder)
      expect([nobody.code, nobody.out]).toEqual([1, ''])
      expect(nobody.err).toContain(
        `plants: sqlite:${folder}/plants.db has no account "nobody": a token makes it one.`,
      )
    }
    expect(await plantsOf(folder, 'b')).toEqual([])
    expect(readFileSync(join(folder, 'one.ndjson'), 'utf8')).toContain('one')
  }, 60_000)
})

test('whatever is written is read again, however the file comes in pieces', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }).map((each) => each.replaceAll('\0', '')),
    fc.string({ unit: fc.constantFrom('"', ',', '\r', '\n', ' ', 'x', '\ufeff') }),
  )
  const id = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
  const plants = fc.array(fc.record({ id, name: text, tag: fc.option(text) }))
  const formats = fc.constantFrom('ndjson' as const, 'csv' as const)
  await fc.assert(
    fc.asyncProperty(
      plants,
      formats,
      fc.integer({ min: 1, max: 50 }),
      async (all, format, length) => {
        const bytes = Buffer.from(`${format === 'csv' ? csvHeader : ''}${plantsText(all, format)}`)
        const read: unknown[] = []
        for await (const part of readPlants(inPieces(bytes, length), format))
          read.push(...part.plants.map((each) => ('plant' in each ? each.plant : each.problem)))
        expect(read).toEqual(all)
      },
    ),
  )
})

async function* inPieces(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}
