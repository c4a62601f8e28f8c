// `plants copy`: all that it moves, interruptions, refusals, and how it shows its progress.
import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { startProgress } from '../../src/cli/progress.ts'
import { issueToken } from '../../src/domain/access.ts'
import type { KeptPlant } from '../../src/domain/plant.ts'
import { scopes } from '../../src/domain/token.ts'
import { ManualClock, until } from '../support/clock.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { run, start } from '../support/process.ts'
import { call, folderMaker } from '../support/service.ts'
import { fill, plant, prepare, withStore } from '../support/stores.ts'

const folder = folderMaker()
const idMin = -(2n ** 63n)
const idMax = 2n ** 63n - 1n

let databases = 0
async function newDatabase(): Promise<string> {
  databases += 1
  const url = await (await sharedPostgres()).createDatabase(`copy_${process.pid}_${databases}`)
  await prepare(url)
  return url
}

const newFile = (): string => `sqlite:${join(folder(), 'plants.db')}`

/** All that a store keeps of these accounts. */
function contentOf(url: string, accounts: readonly string[]): Promise<unknown> {
  return withStore(url, async (store) => ({
    tokens: (await store.kept.tokens({ limit: 100 })).map((token) => ({
      ...token,
      hash: Buffer.from(token.hash).toString('hex'),
    })),
    plants: await Promise.all(
      accounts.map(async (account) =>
        (await store.kept.plants(account, { limit: 5000 })).plants.map((plant) => ({ ...plant })),
      ),
    ),
  }))
}

function copy(from: string, to: string): ReturnType<typeof run> {
  return run(['copy', '--from', from, '--to', to], folder())
}

describe('plants copy', () => {
  test('moves everything there and back, exactly, and a second time changes nothing', async () => {
    const [file, database, again] = [newFile(), await newDatabase(), newFile()]
    const accounts = ["a'b", 'ä \ud83c\udf35', 'empty']
    const odd = [
      plant(idMin, { name: '', tag: '' }),
      plant(0, { tag: '"\\\u0001,{}', idempotencyKey: 'key' }),
      plant(idMax, { name: 'n'.repeat(1_000_000) }),
    ]
    const token = await fill(file, accounts[0] ?? '', odd)
    await fill(
      file,
      accounts[1] ?? '',
      Array.from({ length: 2500 }, (_, n) => plant(n)),
    )
    await fill(file, accounts[2] ?? '', [])
    const [revoked] = await withStore(file, (store) =>
      Promise.resolve(store.tokens.list(accounts[2])),
    )
    await withStore(file, (store) => store.tokens.revoke(revoked?.id ?? '', 5))

    const there = await copy(file, database)
    expect([there.code, there.out]).toEqual([
      0,
      expect.stringMatching(
        / holds all of sqlite:.*: 2503 plants of 3 accounts, and 3 tokens\. Counts and checksums agree\.\n$/,
      ),
    ])
    expect(there.out + there.err).not.toContain('secret')
    expect((await copy(database, again)).code).toBe(0)
    expect((await copy(file, database)).code).toBe(0)
    expect(await contentOf(database, accounts)).toEqual(await contentOf(file, accounts))
    expect(await contentOf(again, accounts)).toEqual(await contentOf(file, accounts))

    const server = start(['serve', '--port', '0', '--store', again], folder())
    const { text } = await call(await server.url, 'GET', '/plants?limit=2', { token })
    expect(JSON.parse(text)).toEqual([
      { name: '', tag: '' },
      { name: 'plant 0', tag: '"\\\u0001,{}' },
    ])
    server.process.kill('SIGTERM')
    await server.finished
  }, 60_000)

  test.each([
    ['SIGKILL', null],
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)(
    'goes on where it was interrupted by %s',
    async (signal, exitCode) => {
      const [file, database] = [newFile(), await newDatabase()]
      const count = 20_000
      await fill(
        file,
        'a',
        Array.from({ length: count }, (_, n) => plant(n, { name: 'n'.repeat(500) })),
      )
      const copying = start(['copy', '--from', file, '--to', database], folder())
      const copied = (): Promise<number> =>
        withStore(database, async (store) => store.kept.countPlants())
      await until('some plants are copied', async () => (await copied()) >= 2000)
      copying.process.kill(signal)
      const { code, err } = await copying.finished
      expect(code).toBe(exitCode)
      if (signal !== 'SIGKILL') {
        expect(err).toEndWith(
          'Interrupted.\nWhat was copied is kept; run the same command again to go on.\n',
        )
      }
      expect(await copied()).toBeLessThan(count)
      const { code: codeAgain, out } = await copy(file, database)
      expect([codeAgain, out]).toEqual([
        0,
        expect.stringContaining(`${count} plants of 1 account,`),
      ])
      expect(await copied()).toBe(count)
    },
    60_000,
  )

  test('refuses to overwrite a plant that differs, and says which', async () => {
    for (const [present, sentence] of [
      [plant(2, { name: 'other' }), 'Plant 2 of the account "a" differs'],
      [plant(2, { idempotencyKey: 'other' }), 'Plant 2 of the account "a" differs'],
      [plant(9), 'Plant 9 of the account "a" is only in the store to copy to'],
      [plant(-9), 'Plant -9 of the account "a" is only in the store to copy to'],
    ] as const) {
      const [from, to] = [newFile(), newFile()]
      await fill(
        from,
        'a',
        [1, 2, 3].map((id) => plant(id)),
      )
      await fill(to, 'a', [present])
      const { code, out, err } = await copy(from, to)
      expect([code, out]).toEqual([1, ''])
      expect(err).toContain(sentence)
      // That would not help.
      expect(err).not.toContain('run the same command again')
      const { plants } = (await contentOf(to, ['a'])) as { plants: KeptPlant[][] }
      expect(plants[0]).toContainEqual(present)
    }
  }, 60_000)

  test('finds the tokens that it has copied among any number of others', async () => {
    const [from, to] = [newFile(), newFile()]
    const issue = (url: string, count: number): Promise<void> =>
      withStore(url, async (store) => {
        const request = { account: 'a', label: '', scopes, lifetimeMs: null }
        await Promise.all(
          Array.from({ length: count }, () =>
            issueToken(store.tokens, request, Date.now(), randomBytes),
          ),
        )
      })
    await issue(from, 30)
    expect((await run(['copy', '--from', from, '--to', to], folder())).code).toBe(0)
    await issue(to, 2500)
    const again = await run(['copy', '--from', from, '--to', to], folder())
    expect([again.code, again.err.includes('is there already')]).toEqual([0, false])
  })

  test('leaves the other accounts of the target store alone', async () => {
    const [from, to] = [newFile(), newFile()]
    await fill(from, 'a', [plant(1)])
    await fill(to, 'b', [plant(1, { name: 'other' })])
    expect((await copy(from, to)).code).toBe(0)
    const { plants } = (await contentOf(to, ['a', 'b'])) as { plants: KeptPlant[][] }
    expect(plants).toEqual([[plant(1)], [plant(1, { name: 'other' })]])
  })

  test('refuses stores that it cannot copy, with a sentence', async () => {
    const file = newFile()
    await fill(file, 'a', [])
    symlinkSync(file.slice('sqlite:'.length), `${file.slice('sqlite:'.length)}.link`)
    const unprepared = await (await sharedPostgres()).createDatabase(
      `copy_unprepared_${process.pid}`,
    )
    for (const [from, to, code, sentence] of [
      [file, file, 2, '--from and --to name the same store.'],
      [file, `${file}.link`, 2, '--from and --to name the same store.'],
      [
        'sqlite:nowhere.db',
        file,
        1,
        'nowhere.db cannot be used: there is no such file; check --from.',
      ],
      [file, unprepared, 1, 'it has no tables yet; run "plants migrate --store URL" first.'],
      [file, 'postgres://u:secret@127.0.0.1:1/x', 1, '127.0.0.1:1 refuses connections'],
      ['x', file, 2, '--from must be sqlite:FILE or postgres://'],
    ] as const) {
      const refused = await copy(from, to)
      expect([refused.code, refused.out]).toEqual([code, ''])
      expect(refused.err).toContain(sentence)
      expect(refused.err).not.toContain('secret')
    }
    expect((await run(['copy'], folder())).err).toStartWith(
      'plants: --from is missing.\nplants: --to is missing.\n',
    )
  })
})

describe('progress', () => {
  async function shown(errorIsTerminal: boolean): Promise<string[]> {
    const written: string[] = []
    const clock = new ManualClock()
    const add = (text: string): void => void written.push(text)
    const progress = startProgress(
      { errorIsTerminal, draw: add, tell: add, clock },
      'copying',
      1000,
    )
    for (let n = 0; n < 5; n += 1) {
      await clock.advance(2500)
      progress.add(100)
    }
    progress.end()
    return written
  }

  test('is a bar on a terminal, with the rate and the time that is left', async () => {
    const written = await shown(true)
    expect(written).toHaveLength(7)
    expect(written[3]).toBe(
      '\rcopying   [######..........]  40 %  400 of 1000, 40/s, 15 s left\u001b[K',
    )
    expect(written.at(-1)).toBe('\n')
  })

  test('is a plain line every five seconds elsewhere', async () => {
    expect(await shown(false)).toEqual([
      'copying: 20 %, 200 of 1000, 40/s, 20 s left',
      'copying: 40 %, 400 of 1000, 40/s, 15 s left',
      'copying: 50 %, 500 of 1000, 40/s, 13 s left',
    ])
  })
})
