// `plants token` as a black box, and what all commands have in common.
import { describe, expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { run as runCommand } from '../../src/cli/commands.ts'
import type { World } from '../../src/cli/world.ts'
import { systemClock } from '../../src/clock.ts'
import { launcher, makeStore, run, serve, tokenFor } from '../support/process.ts'
import { call, folderMaker } from '../support/service.ts'

const folder = folderMaker()

describe('plants token issue', () => {
  test('prints the token, alone, on standard output, and the rest on standard error', async () => {
    const home = folder()
    await makeStore(home)
    const { code, out, err } = await run(
      ['token', 'issue', '--account', 'greenhouse', '--label', 'ci'],
      home,
    )
    expect(code).toBe(0)
    expect(out).toMatch(/^plants_[0-9A-Za-z]{49}\n$/)
    expect(err).toMatch(
      /^Token [0-9a-f]{12} for the account greenhouse \(plants:read, plants:write; does not expire\), in sqlite:\/.*plants\.db\.\nIt is shown only now.*\n$/,
    )
    expect(err).toContain(` in sqlite:${home}/plants.db.\n`)
    expect(err).not.toContain(out.trim())
  })

  test('takes scopes and an expiry', async () => {
    const home = folder()
    await makeStore(home)
    await run(
      ['token', 'issue', '--account', 'a', '--scopes', 'plants:read', '--expires', '90d'],
      home,
    )
    const [token] = JSON.parse((await run(['token', 'list', '--json'], home)).out)
    expect(token).toMatchObject({
      account: 'a',
      label: '',
      scopes: ['plants:read'],
      state: 'active',
      revokedAt: null,
      lastUsedAt: null,
    })
    expect(Date.parse(token.expiresAt) - Date.parse(token.createdAt)).toBe(90 * 86_400_000)
  })

  test.each([
    [[], '--account is missing'],
    [['--expires', 'never'], '--expires must be'],
    [['--account', ''], '--account must be 1 to 255 characters of text, not ""'],
    [['--account', 'x'.repeat(256)], '--account must be 1 to 255 characters of text'],
    [['--account', ' a'], '--account must be without white space at either end, not " a".'],
    [['--account', 'a\u00a0'], '--account must be without white space at either end, not'],
    [['--account', 'a\u0007b'], '--account must be without control characters, not "a\\u0007b".'],
    [['--account', 'a\u2028b'], '--account must be without control characters, not'],
    [
      ['--account', 'a', '--label', 'two\nlines'],
      '--label must be without control characters, not "two\\nlines".',
    ],
    [
      ['--account', 'x'.repeat(5000)],
      `--account must be 1 to 255 characters of text, not "${'x'.repeat(100)}…".\n`,
    ],
    [['--account', 'a', 'x'.repeat(5000)], `"${'x'.repeat(100)}…" is one argument too many.\n`],
    [
      ['--account', 'a', '--scopes', 'plants:read,plants:water'],
      '--scopes must be one or more of plants:read, plants:write',
    ],
    [['--account', 'a', '--scopes', ''], '--scopes must be'],
    [['--account', 'a', '--expires', '90'], '--expires must be a time such as 90d'],
    [['--account', 'a', '--expires', '0d'], '--expires must be'],
    [['--account', 'a', '--expires', '-1d'], '--expires must be'],
    [['--account', 'a', '--expires', '99999999d'], '--expires must be'],
    [['--account', 'a', '--store', 'mysql:x'], '--store must be sqlite:FILE'],
    [['--account', 'a', '--port', '1'], '--port is not known to this command'],
    [['--account', 'a', 'extra'], '"extra" is one argument too many'],
    [['--account', 'a', '--account', 'b'], '--account is given more than once'],
    [
      ['--account', 'a', '--store', 'sqlite://x.db'],
      '--store must be sqlite:FILE without slashes before it',
    ],
    [
      ['--account', 'a', '--store', 'sqlite:file:x.db?mode=ro'],
      '--store must be sqlite:FILE without slashes before it, "file:" or a question mark; try sqlite:x.db',
    ],
    [
      ['--account', 'a', '--store', 'sqlite:~/x.db'],
      '--store must be sqlite:FILE with the name of your folder written out',
    ],
    [['--account'], '--account needs a value'],
    [['--account', '--label', 'x'], '--account needs a value'],
  ])('refuses %j with exit code 2 and a sentence', async (args, sentence) => {
    const { code, out, err } = await run(['token', 'issue', ...args], folder())
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(`plants: ${sentence}`)
    expect(err).not.toMatch(/\n\s+at /)
  })
})

test('eight token issues that race on a new store all work', async () => {
  const home = folder()
  await makeStore(home)
  const tokens = await Promise.all(Array.from({ length: 8 }, () => tokenFor('a', home)))
  expect(tokens.filter((token) => /^plants_\w{49}$/.test(token))).toHaveLength(8)
  expect(JSON.parse((await run(['token', 'list', '--json'], home)).out)).toHaveLength(8)
})

test('a command line shows all its problems at once', async () => {
  const { code, err } = await run(['token', 'issue', '--expires', 'never'], folder())
  expect(code).toBe(2)
  expect(err).toContain('plants: --account is missing.\n')
  expect(err).toContain('plants: --expires must be')
})

describe('plants token list', () => {
  test('shows a table to people', async () => {
    const home = folder()
    await tokenFor('a', home, '--label', 'two words')
    // An earlier version took such a name.
    const database = new DatabaseSync(join(home, 'plants.db'))
    database.exec("update tokens set account = 'a\u001b[31m'")
    database.close()
    const { out } = await run(['token', 'list'], home)
    const [head, row] = out.trimEnd().split('\n')
    expect(head).toMatch(/^ID +ACCOUNT +LABEL +SCOPES +STATE +CREATED +EXPIRES +LAST USED$/)
    expect(row).toMatch(
      /^[0-9a-f]{12} +a\\u001b\[31m +two words +plants:read,plants:write +active +\d{4}-\d\d-\d\d +never +never$/,
    )
  })

  test('shows one account if it is named, and says so if there is no token', async () => {
    const home = folder()
    await tokenFor('a', home)
    await tokenFor('b', home)
    expect(
      JSON.parse((await run(['token', 'list', '--json', '--account', 'b'], home)).out).map(
        ({ account }: { account: string }) => account,
      ),
    ).toEqual(['b'])
    expect(
      JSON.parse((await run(['token', 'list', '--json', '--account', 'c'], home)).out),
    ).toEqual([])
    expect((await run(['token', 'list', '--account', 'c'], home)).out).toBe(
      `There are no such tokens. Issue one with: ${launcher} token issue --account c --store sqlite:${home}/plants.db\n`,
    )
  })

  test('never shows a token or its hash', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const { out } = await run(['token', 'list', '--json'], home)
    expect(out).not.toContain(token.slice(7, 30))
    expect(Object.keys(JSON.parse(out)[0])).toEqual([
      'id',
      'account',
      'label',
      'scopes',
      'state',
      'createdAt',
      'expiresAt',
      'revokedAt',
      'lastUsedAt',
    ])
  })
})

describe('an output that takes nothing', () => {
  const full = (args: string, home: string): Promise<{ code: number; err: string }> =>
    new Promise((resolve) => {
      const child = spawn('sh', ['-c', `"${launcher}" ${args} >/dev/full`], { cwd: home })
      let err = ''
      child.stderr.on('data', (data) => {
        err += data
      })
      child.on('close', (code) => resolve({ code: code ?? -1, err }))
    })

  test.each(['help', 'version', 'token list', 'account list'])(
    'is told in a sentence: %s',
    async (args) => {
      const home = folder()
      await makeStore(home)
      const { code, err } = await full(args, home)
      expect(code).toBe(1)
      expect(err).toMatch(/^plants: The output cannot be written: ENOSPC[^\n]*\.\n$/)
    },
  )

  test('leaves a token that nobody has seen, and says how to revoke it', async () => {
    const home = folder()
    await makeStore(home)
    const { code, err } = await full('token issue --account a', home)
    expect(code).toBe(1)
    const [, id] =
      /Nobody has seen token (\w{12}); revoke it with: \S+ token revoke \1 /.exec(err) ?? []
    expect((await run(['token', 'revoke', id ?? ''], home)).code).toBe(0)
  })

  test('lets a former token work on', async () => {
    const home = folder()
    await makeStore(home)
    await tokenFor('a', home)
    const [former] = JSON.parse((await run(['token', 'list', '--json'], home)).out)
    expect((await full(`token rotate ${former.id}`, home)).err).toContain('Nobody has seen token')
    const tokens = JSON.parse((await run(['token', 'list', '--active', '--json'], home)).out)
    expect(tokens.map(({ id }: { id: string }) => id)).toContain(former.id)
  })
})

describe('an empty file', () => {
  test('is no store for a command, and stays empty', async () => {
    const home = folder()
    writeFileSync(join(home, 'plants.db'), '')
    for (const args of [
      ['token', 'list'],
      ['account', 'list'],
      ['backup', 'copy.db'],
    ]) {
      const { code, err } = await run(args, home)
      expect(code).toBe(1)
      expect(err).toContain('it is empty, no store was made in it yet; ')
    }
    expect(readFileSync(join(home, 'plants.db'))).toHaveLength(0)
  })
})

describe('plants token rotate', () => {
  const tokensIn = async (home: string, ...more: string[]): Promise<Record<string, unknown>[]> =>
    JSON.parse((await run(['token', 'list', '--json', ...more], home)).out)

  test('issues a token like the former one, and revokes that', async () => {
    const home = folder()
    await makeStore(home)
    const args = ['--account', 'a', '--label', 'ci', '--scopes', 'plants:read', '--expires', '90d']
    const issued = await run(['token', 'issue', ...args], home)
    const [former] = await tokensIn(home)
    const id = String(former?.['id'])
    const { code, out, err } = await run(['token', 'rotate', id], home)
    expect(code).toBe(0)
    expect(out).toMatch(/^plants_[0-9A-Za-z]{49}\n$/)
    expect(out).not.toBe(issued.out)
    expect(err).toEndWith(`\nToken ${id} is revoked.\n`)
    const active = await tokensIn(home, '--active')
    expect(active).toEqual([
      expect.objectContaining({
        account: 'a',
        label: 'ci',
        scopes: ['plants:read'],
        state: 'active',
      }),
    ])
    const [{ expiresAt, createdAt } = {}] = active
    expect(Date.parse(String(expiresAt)) - Date.parse(String(createdAt))).toBe(90 * 86_400_000)
    expect(await tokensIn(home)).toHaveLength(2)

    const server = serve(home)
    const status = async (token: string): Promise<number> =>
      (await call(await server.url, 'GET', '/plants', { token: token.trim() })).status
    expect([await status(issued.out), await status(out)]).toEqual([401, 200])
    server.process.kill('SIGTERM')
    await server.finished
  }, 30_000)

  test('refuses one that is revoked, one that is not there, and a token', async () => {
    const home = folder()
    await makeStore(home)
    const token = await tokenFor('a', home)
    const id = String((await tokensIn(home))[0]?.['id'])
    await run(['token', 'revoke', id], home)
    const revoked = await run(['token', 'rotate', id], home)
    expect([revoked.code, revoked.out]).toEqual([1, ''])
    expect(revoked.err).toStartWith(
      `plants: Token ${id} is revoked already. Issue a new one with: `,
    )
    const missing = await run(['token', 'rotate', 'ffff'], home)
    expect([missing.code, missing.err]).toEqual([
      1,
      expect.stringContaining('no token has the id "ffff"'),
    ])
    const confused = await run(['token', 'rotate', token], home)
    expect([confused.code, confused.err]).toEqual([2, expect.stringContaining('that is a token')])
    expect(confused.err).not.toContain(token)
    expect(await tokensIn(home)).toHaveLength(1)
  })
})

describe('plants token revoke', () => {
  test('refuses an id that is not there', async () => {
    const home = folder()
    await tokenFor('a', home)
    const { code, err } = await run(['token', 'revoke', 'nonsense'], home)
    expect([code, err]).toEqual([
      1,
      `plants: no token has the id "nonsense". All are shown by: ${launcher} token list --store sqlite:${home}/plants.db\n`,
    ])
    expect((await run(['token', 'revoke'], home)).err).toContain('plants: TOKEN-ID is missing.')
    const token = await tokenFor('a', home)
    const mistaken = await run(['token', 'revoke', token], home)
    expect(mistaken.code).toBe(2)
    expect(mistaken.err).toContain('plants: that is a token, not the id of one')
    expect((await run(['token', 'list', token], home)).err).toContain(
      '"plants_[redacted]" is one argument too many',
    )
    expect(mistaken.err).not.toContain(token)
  })

  test('is seen by a running server at the next request', async () => {
    const home = folder()
    const server = serve(home)
    const url = await server.url
    const [revoked, kept] = [
      await tokenFor('a', home, '--label', 'revoked'),
      await tokenFor('a', home),
    ]
    for (const token of [revoked, kept])
      expect((await call(url, 'GET', '/plants', { token })).status).toBe(200)
    const listed = JSON.parse((await run(['token', 'list', '--json'], home)).out) as {
      id: string
      label: string
    }[]
    const { code } = await run(
      ['token', 'revoke', listed.find(({ label }) => label === 'revoked')?.id ?? ''],
      home,
    )
    expect(code).toBe(0)
    expect((await call(url, 'GET', '/plants', { token: revoked })).status).toBe(401)
    expect((await call(url, 'GET', '/plants', { token: kept })).status).toBe(200)
    expect((await run(['token', 'list'], home)).out).toContain('revoked')
    server.process.kill('SIGTERM')
    await server.finished
  })
})

test.each(['token issue --account a', 'token list', 'token revoke 0123456789ab'])(
  '%s makes no store, and says how to make one',
  async (line) => {
    const home = folder()
    const { code, out, err } = await run([...line.split(' '), '--store', 'sqlite:typo.db'], home)
    const file = `${home}/typo.db`
    expect([code, out, err]).toEqual([
      1,
      '',
      `plants: The store ${file} cannot be used: there is no such file; start the server first (${launcher} serve --store sqlite:${file}), or check --store.\n`,
    ])
    expect(readdirSync(home)).toEqual([])
  },
)

/**
 * Overwrites the first page of a store's table or index, or the last page of its rows.
 */
function damage(file: string, name: string, what: 'root' | 'last leaf'): void {
  const database = new DatabaseSync(file)
  const { root } = database
    .prepare('select rootpage as root from sqlite_schema where name = ?')
    .get(name) as { root: number }
  database.close()
  const bytes = readFileSync(file)
  // An inner page names its last child at byte 8 (https://sqlite.org/fileformat.html).
  const page = what === 'root' ? root : bytes.readUInt32BE((root - 1) * 4096 + 8)
  writeFileSync(file, bytes.fill(0xaa, (page - 1) * 4096, page * 4096))
}

describe('a damaged file', () => {
  test('is named, with the cause, by each command that meets the damage', async () => {
    const home = folder()
    await makeStore(home)
    const file = join(home, 'plants.db')
    const filling = new DatabaseSync(file)
    filling.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
      insert into tokens select randomblob(32), 'id' || i, 'a', '', 'plants:read', 0, null, null, null from n`)
    filling.close()
    damage(file, 'tokens', 'last leaf')
    const listed = await run(['token', 'list'], home)
    expect([listed.code, listed.out, listed.err]).toEqual([
      1,
      '',
      `plants: The store ${file} cannot be used: the file is damaged; restore it from a backup.\n`,
    ])
    damage(file, 'sqlite_autoindex_tokens_2', 'root')
    for (const line of [
      'token issue --account a',
      'token revoke id1',
      'serve --port 0 --first-token',
    ]) {
      const { code, out, err } = await run(line.split(' '), home)
      expect([line, code, out]).toEqual([line, 1, ''])
      expect(err).toContain(`plants: The store ${file} cannot be used: `)
      expect(err).toContain('malformed')
      expect(err).not.toContain('try again')
    }
  })
})

describe('a defect', () => {
  test('shows its stack, unlike a refusal', async () => {
    const home = folder()
    await makeStore(home)
    const told: string[] = []
    const world = {
      environment: {},
      launcher,
      tell: (text: string) => void told.push(text),
      clock: {
        ...systemClock,
        wallMs: () => {
          throw new TypeError('no clock')
        },
      },
      randomBytes,
    }
    const code = await runCommand(
      ['token', 'list', '--store', `sqlite:${home}/plants.db`],
      world as unknown as World,
    )
    expect(code).toBe(1)
    expect(told.join()).toStartWith('plants: a defect of this program: TypeError: no clock\n')
    expect(told.join()).toMatch(/\n +at .*tokens\.ts:\d+/)
  })
})

test('a command whose reader has left ends as one that got SIGPIPE, without a word', async () => {
  const command = spawn(launcher, ['--help'], { cwd: folder(), stdio: ['ignore', 'pipe', 'pipe'] })
  // Before it can have started.
  command.stdout.destroy()
  let err = ''
  command.stderr.on('data', (data) => {
    err += data
  })
  expect(await once(command, 'close')).toEqual([141, null])
  expect(err).toBe('')
})

test('a command that a message shows works when it is pasted in another folder, despite an odd name', async () => {
  const home = join(folder(), "it's a folder")
  mkdirSync(home)
  await makeStore(home)
  const hint = (await run(['token', 'list'], home)).out.trim().replace(/^.*with: /, '')
  const pasted = Bun.spawnSync(['sh', '-c', hint], { cwd: folder() })
  expect(pasted.stdout.toString()).toMatch(/^plants_\w{49}\n$/)
  expect((await run(['token', 'list'], home)).out).toContain('NAME')
})

describe('plants', () => {
  test('explains itself', async () => {
    const home = folder()
    const help = await run(['--help'], home)
    expect(help.code).toBe(0)
    for (const command of [
      'plants serve',
      'plants token issue',
      'plants token list',
      'plants token revoke TOKEN-ID',
    ])
      expect(help.out).toContain(command)
    const serveHelp = await run(['serve', '--help'], home)
    for (const part of [
      '--host ADDRESS',
      '--port NUMBER',
      '--store URL',
      '--first-token',
      'PLANTS_STORE',
      'PLANTS_PORT',
    ])
      expect(serveHelp.out).toContain(part)
    for (const args of ['--version', '-V', 'version'])
      expect((await run([args], home)).out).toBe('1.0.0\n')
    for (const args of [['help'], ['-h']]) expect((await run(args, home)).out).toBe(help.out)
    for (const args of [
      ['help', 'serve'],
      ['serve', '--port', 'x', '-h'],
    ])
      expect((await run(args, home)).out).toBe(serveHelp.out)
    const group = await run(['help', 'token'], home)
    expect([group.code, group.err, (await run(['token', '--help'], home)).out]).toEqual([
      0,
      '',
      group.out,
    ])
    expect(group.out).toContain('plants token revoke TOKEN-ID')
    expect(group.out).not.toContain('plants serve')
  })

  test.each([
    ['tokens list', '"tokens list" is not a command; did you mean "plants token list"?'],
    ['token isue --account a', '"token isue" is not a command; did you mean "plants token issue"?'],
    ['srve', '"srve" is not a command; did you mean "plants serve"?'],
    ['help tokn', '"tokn" is not a command; did you mean "plants token"?'],
    ['revoke x', '"revoke x" is not a command; did you mean "plants token revoke"?'],
    ['--vresion', '"--vresion" is not a command; did you mean "plants --version"?'],
    ['serve --stroe sqlite:x', '--stroe is not known to this command; did you mean --store?'],
    ['serve -port 80', '-port is not known to this command; did you mean --port?'],
    ['serve --wat', '--wat is not known to this command.'],
  ])('tells what was probably meant by %s', async (line, sentence) => {
    const { code, out, err } = await run(line.split(' '), folder())
    expect([code, out]).toEqual([2, ''])
    expect(err.split('\n')).toEqual([
      `plants: ${sentence}`,
      expect.stringMatching(/^See: .*\/bin\/plants (?:.* )?--help$/),
      '',
    ])
  })

  test('lists the commands of a group', async () => {
    const { code, out, err } = await run(['token'], folder())
    expect([code, out]).toEqual([2, ''])
    expect(err).toStartWith('Usage:\n  plants token issue ')
    expect((await run(['token', 'grow'], folder())).err).toBe(
      `plants: "token grow" is not a command.\n${err}`,
    )
  })

  test('refuses a line that names no command', async () => {
    for (const args of [[], ['grow'], ['token'], ['token', 'grow'], ['--wat']]) {
      const { code, out, err } = await run(args, folder())
      expect([code, out]).toEqual([2, ''])
      expect(err).toContain('Usage:')
    }
  })
})
