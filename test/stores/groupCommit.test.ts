// What becomes of writes when the writer fails: it is said exactly, and nobody waits for ever.
import { describe, expect, test } from 'bun:test'
import { GroupCommit, WaitingRoom } from '../../src/stores/groupCommit.ts'
import type { Outcome, Write } from '../../src/stores/sqlite/writer/batch.ts'
import { type Channel, commitThrough, textOf } from '../../src/stores/sqlite/writer/channel.ts'

const write: Write = ['deletePlant', 'a', '1']

function channel(send: Channel['send'], ready: Channel['ready'] = async () => {}): Channel {
  return { ready, send, close: async () => {} }
}

function groupCommit(through: Channel): GroupCommit<Write, Outcome> {
  return new GroupCommit(commitThrough(through), { room: new WaitingRoom(), textOf })
}

const slowCommitMs = 40

function slowGroup(
  commit: (batch: readonly string[]) => Promise<void>,
): GroupCommit<string, string> {
  return new GroupCommit(
    async (batch) => {
      await commit(batch)
      await Bun.sleep(slowCommitMs)
      return batch
    },
    { room: new WaitingRoom(), textOf: ({ length }) => length },
  )
}

describe('group commit', () => {
  test('puts the writes that arrive together, and those that arrive during a commit, into one batch each', async () => {
    const batches: number[] = []
    const group = groupCommit(
      channel(async (batch) => {
        const writes = JSON.parse(batch) as Write[]
        batches.push(writes.length)
        if (batches.length === 1) for (let n = 0; n < 5; n += 1) void group.submit('a', write)
        await Bun.sleep(5)
        return JSON.stringify({ outcomes: writes.map(() => 1) })
      }),
    )
    await Promise.all(Array.from({ length: 3 }, () => group.submit('a', write)))
    await group.finish()
    expect(batches).toEqual([3, 5])
  })

  test('waits after a long commit for the writers that it settled, so that they and the others become one batch', async () => {
    const batches: number[] = []
    const group = slowGroup(async (batch) => void batches.push(batch.length))
    const writeOften = async (): Promise<void> => {
      for (let written = 0; written < 5; written += 1) {
        await group.submit('a', 'x')
        // As long as an answer and the next request take.
        await Bun.sleep(1)
      }
    }
    const first = [writeOften(), writeOften()]
    await Bun.sleep(1)
    await Promise.all([...first, writeOften(), writeOften()])
    expect(batches.slice(0, 4)).toEqual([2, 4, 4, 4])
  })

  test('waits for nobody where writers come one by one', async () => {
    const order: string[] = []
    const group = slowGroup(async () => void order.push('commit'))
    const first = [group.submit('a', 'x'), group.submit('a', 'x')]
    await Bun.sleep(slowCommitMs / 2)
    const late = group.submit('a', 'x')
    await Promise.all(first)
    await new Promise<void>((resolve) =>
      setImmediate(() => resolve(void order.push('turn of others'))),
    )
    await late
    expect(order).toEqual(['commit', 'commit', 'turn of others'])
  })

  test('waits for nobody after a commit that failed', async () => {
    const order: string[] = []
    const group = slowGroup(async () => {
      order.push('commit')
      if (order.length === 1) {
        await Bun.sleep(slowCommitMs)
        throw new Error('the disk is gone')
      }
    })
    const first = Promise.allSettled([group.submit('a', 'x'), group.submit('a', 'x')])
    await Bun.sleep(1)
    const early = group.submit('a', 'x')
    await first
    await new Promise<void>((resolve) =>
      setImmediate(() => resolve(void order.push('turn of others'))),
    )
    await early
    expect(order).toEqual(['commit', 'commit', 'turn of others'])
  })

  test('keeps writes with one key apart, each in a batch of its own, while others go ahead', async () => {
    const batches: string[][] = []
    const group = new GroupCommit<string, number>(
      async (batch) => {
        batches.push([...batch])
        return batch.map(() => batches.length)
      },
      { room: new WaitingRoom(), textOf: ({ length }) => length, keyOf: (write) => write },
    )
    expect(await Promise.all(['x', 'x', 'y', 'x'].map((each) => group.submit('a', each)))).toEqual([
      1, 2, 1, 3,
    ])
    expect(batches).toEqual([['x', 'y'], ['x'], ['x']])
  })

  test('refuses writes that have waited too long for those before them', async () => {
    const group = new GroupCommit<string, string>(
      async (batch) => {
        await Bun.sleep(50)
        return batch
      },
      {
        room: new WaitingRoom(),
        textOf: ({ length }) => length,
        keyOf: () => 'one at a time',
        waitMaxMs: 75,
      },
    )
    const settled = await Promise.allSettled(
      ['first', 'second', 'third', 'fourth'].map((each) => group.submit('a', each)),
    )
    expect(settled.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ])
    expect(settled[3]).toMatchObject({ reason: { refusal: 'store-unavailable' } })
  })

  test('counts what is being written to the room that is taken, and says when it is idle', async () => {
    let idle = 0
    const room = new WaitingRoom()
    const { promise, resolve } = Promise.withResolvers<void>()
    const onIdle = (): void => {
      idle += 1
    }
    const options = { room, textOf: ({ length }: string) => length, onIdle }
    const group = new GroupCommit<string, string>(async (batch) => {
      await promise
      return batch
    }, options)
    const first = group.submit('a', 'x'.repeat(30 * 1024 * 1024))
    await Bun.sleep(5)
    await expect(group.submit('a', 'x'.repeat(5 * 1024 * 1024))).rejects.toMatchObject({
      refusal: 'store-unavailable',
    })
    await expect(
      new GroupCommit<string, string>(async (batch) => batch, options).submit(
        'a',
        'x'.repeat(5 * 1024 * 1024),
      ),
    ).rejects.toThrow()
    expect(idle).toBe(1)
    resolve()
    await first
    await Bun.sleep(5)
    expect(idle).toBe(2)
    expect(await group.submit('a', 'x')).toBe('x')
  })

  test('says that nothing was done where the batch was undone, and that it is unknown where it was not', async () => {
    const undone = groupCommit(channel(async () => '{"failed":"disk full","undone":true}'))
    await expect(undone.submit('a', write)).rejects.toMatchObject({
      refusal: 'store-unavailable',
      cause: { message: 'disk full' },
    })
    const unknown = groupCommit(
      channel(async () => '{"failed":"input output error","undone":false}'),
    )
    await expect(unknown.submit('a', write)).rejects.toMatchObject({
      refusal: 'outcome-unknown',
      cause: { message: 'input output error' },
    })
  })

  test('says unknown where the writer dies during the batch, and nothing done where it was dead before', async () => {
    const dying = groupCommit(channel(() => Promise.reject(new Error('the writer has ended'))))
    await expect(dying.submit('a', write)).rejects.toMatchObject({ refusal: 'outcome-unknown' })
    const dead = groupCommit(
      channel(
        () => new Promise(() => {}),
        () => Promise.reject(new Error('the writer has ended')),
      ),
    )
    await expect(dead.submit('a', write)).rejects.toMatchObject({ refusal: 'store-unavailable' })
  })

  test('refuses what would not fit into the memory it may take, and takes more once there is room', async () => {
    const group = groupCommit(
      channel(async (batch) => {
        await Bun.sleep(1)
        return JSON.stringify({ outcomes: (JSON.parse(batch) as Write[]).map(() => 1) })
      }),
    )
    const large: Write = ['createPlant', 'a', '1', 'n'.repeat(1024 * 1024), null, null]
    const results = await Promise.allSettled(
      Array.from({ length: 80 }, () => group.submit('a', large)),
    )
    const refused = results.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBeGreaterThan(40)
    expect(refused.length).toBeLessThan(60)
    expect(await group.submit('a', large)).toBe(1)
  })

  test('shares batches and room out by account, so that one that writes much holds up nobody', async () => {
    const batches: string[][] = []
    const group = new GroupCommit<string, string>(
      async (batch) => {
        batches.push(batch.map((text) => text.slice(0, 1)))
        await Bun.sleep(1)
        return batch
      },
      { room: new WaitingRoom(), textOf: ({ length }) => length },
    )
    const large = 'h'.repeat(1024 * 1024)
    const hog = Array.from({ length: 100 }, () => group.submit('hog', large).catch(() => 'refused'))
    const others = ['b', 'c'].map((account) => group.submit(account, account))
    await Promise.all(others)
    // The others did not wait for more than the batch that was under way.
    expect(batches.slice(0, 2).flat()).toEqual(expect.arrayContaining(['b', 'c']))
    expect(
      (await Promise.all(hog)).filter((outcome) => outcome === 'refused').length,
    ).toBeGreaterThan(60)
  })

  test('serves each account in its turn, however many write more than fits into a batch', async () => {
    const served: string[] = []
    const group = new GroupCommit<string, string>(
      async (batch) => {
        served.push(...batch.map((text) => text.slice(0, 1)))
        return batch
      },
      { room: new WaitingRoom(), textOf: ({ length }) => length },
    )
    const accounts = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    // Four of these fill a batch.
    await Promise.all(
      accounts.flatMap((account) =>
        [1, 2].map(() => group.submit(account, account.repeat(1024 * 1024))),
      ),
    )
    expect(served.slice(0, 8).toSorted()).toEqual(accounts)
  })
})
