// Which writes share a batch, how long each waits for it, and what becomes of those that cannot.
import { describe, expect, test } from 'bun:test'
import {
  type Commit,
  GroupCommit,
  type GroupCommitOptions,
  WriteQuota,
} from '../../src/stores/groupCommit.ts'
import { ManualClock, settled } from '../support/clock.ts'

const commitMs = 40
const MiB = 1024 * 1024

/** A group that commits at once, and what it has committed. */
function group(
  options: Partial<GroupCommitOptions<string>> = {},
  commit: Commit<string, string> = async (batch) => batch,
): { group: GroupCommit<string, string>; batches: string[][] } {
  const batches: string[][] = []
  const clock = new ManualClock()
  const made = new GroupCommit<string, string>(
    async (batch) => {
      batches.push([...batch])
      return await commit(batch)
    },
    { clock, quota: new WriteQuota(), lengthOf: ({ length }) => length, ...options },
  )
  return { group: made, batches }
}

/** A group whose commits take `commitMs`. */
function slowGroup(options: Partial<GroupCommitOptions<string>> = {}): {
  group: GroupCommit<string, string>
  batches: string[][]
  clock: ManualClock
} {
  const clock = new ManualClock()
  const made = group({ clock, ...options }, async (batch) => {
    await clock.sleep(commitMs)
    return batch
  })
  return { ...made, clock }
}

describe('group commit', () => {
  test('puts the writes that arrive together into one batch, and those that arrive meanwhile into the next', async () => {
    const { group, batches, clock } = slowGroup()
    const first = Promise.all(['a', 'b', 'c'].map((each) => group.submit('a', each)))
    await clock.advance(commitMs - 1)
    const second = Promise.all(['d', 'e'].map((each) => group.submit('a', each)))
    await clock.advance(1)
    expect(await first).toEqual(['a', 'b', 'c'])
    await clock.advance(2 * commitMs)
    expect(await second).toEqual(['d', 'e'])
    expect(batches).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ])
    await group.finish()
  })

  test('waits after a long commit for the writers that it settled, so that they and the others become one batch', async () => {
    const { group, batches, clock } = slowGroup()
    const writeOften = async (): Promise<void> => {
      for (let written = 0; written < 5; written += 1) {
        await group.submit('a', 'x')
        // As long as an answer and the next request take.
        await clock.sleep(1)
      }
    }
    const writers = [writeOften(), writeOften()]
    await clock.advance(1)
    writers.push(writeOften(), writeOften())
    await clock.advance(10 * commitMs)
    await Promise.all(writers)
    expect(batches.map(({ length }) => length)).toEqual([2, 4, 4, 4, 4, 2])
  })

  test('waits for them for a part of the time of the commit, and for 5 ms at most', async () => {
    for (const [tookMs, waitMs] of [
      [8, 2],
      [commitMs, 5],
    ] as const) {
      const clock = new ManualClock()
      const { group: made, batches } = group({ clock }, async (batch) => {
        await clock.sleep(tookMs)
        return batch
      })
      const writes = [made.submit('a', 'x'), made.submit('a', 'x')]
      await settled()
      writes.push(made.submit('a', 'x'))
      await clock.advance(tookMs + waitMs - 0.5)
      expect(batches).toHaveLength(1)
      await clock.advance(0.5)
      expect(batches).toHaveLength(2)
      await clock.advance(tookMs)
      await Promise.all(writes)
    }
  })

  test('waits for nobody after a short commit', async () => {
    const clock = new ManualClock()
    const { group: made, batches } = group({ clock }, async (batch) => {
      await clock.sleep(1)
      return batch
    })
    const writes = [made.submit('a', 'x'), made.submit('a', 'x')]
    await settled()
    writes.push(made.submit('a', 'x'))
    await clock.advance(1)
    expect(batches).toHaveLength(2)
    await clock.advance(1)
    await Promise.all(writes)
  })

  test('waits for nobody if writers come one by one', async () => {
    const { group, batches, clock } = slowGroup()
    const writes = [group.submit('a', 'x'), group.submit('a', 'x')]
    await clock.advance(commitMs / 2)
    writes.push(group.submit('a', 'x'))
    await clock.advance(commitMs / 2)
    expect(batches).toHaveLength(2)
    await clock.advance(commitMs)
    await Promise.all(writes)
  })

  test('waits for nobody after a commit that failed', async () => {
    const clock = new ManualClock()
    const { group: made, batches } = group({ clock }, async (batch) => {
      await clock.sleep(commitMs)
      if (batches.length === 1) throw new Error('the disk is gone')
      return batch
    })
    const first = Promise.allSettled([made.submit('a', 'x'), made.submit('a', 'x')])
    await settled()
    const early = made.submit('a', 'x')
    await clock.advance(commitMs)
    expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(batches).toHaveLength(2)
    await clock.advance(commitMs)
    expect(await early).toBe('x')
  })

  test('keeps writes with one key apart, each in a batch of its own, while others go ahead', async () => {
    const { group: made, batches } = group({ keyOf: (write) => write })
    await Promise.all(['x', 'x', 'y', 'x'].map((each) => made.submit('a', each)))
    expect(batches).toEqual([['x', 'y'], ['x'], ['x']])
  })

  test('refuses writes that have waited too long for those before them', async () => {
    const { group, clock } = slowGroup({ keyOf: () => 'one at a time', waitMaxMs: 50 })
    const writes = Promise.allSettled(
      ['first', 'second', 'third', 'fourth'].map((each) => group.submit('a', each)),
    )
    await clock.advance(4 * commitMs)
    const refused = {
      status: 'rejected' as const,
      reason: expect.objectContaining({
        refusal: 'store-unavailable',
        cause: new Error('it waited too long for the writes before it'),
      }),
    }
    expect(await writes).toEqual([
      { status: 'fulfilled', value: 'first' },
      { status: 'fulfilled', value: 'second' },
      refused,
      refused,
    ])
  })

  test('counts what is being written to the quota that is taken, and says when it is idle', async () => {
    let idle = 0
    const onIdle = (): void => {
      idle += 1
    }
    const options = { quota: new WriteQuota(), onIdle }
    const { group: slow, clock } = slowGroup(options)
    const first = slow.submit('a', 'x'.repeat(30 * MiB))
    await settled()
    const refused = { refusal: 'store-unavailable' }
    await expect(slow.submit('a', 'x'.repeat(5 * MiB))).rejects.toMatchObject(refused)
    const { group: other } = group(options)
    await expect(other.submit('a', 'x'.repeat(5 * MiB))).rejects.toMatchObject(refused)
    expect(idle).toBe(1)
    await clock.advance(commitMs)
    await first
    await settled()
    expect(idle).toBe(2)
    expect(await other.submit('a', 'x')).toBe('x')
  })

  test('refuses what would not fit into the memory it may take, and takes more once there is room', async () => {
    const { group: made } = group()
    const large = 'n'.repeat(MiB)
    const results = await Promise.allSettled(
      Array.from({ length: 80 }, () => made.submit('a', large)),
    )
    // One account takes half of the 64 MiB.
    expect(results.map(({ status }) => status)).toEqual(
      results.map((_, n) => (n < 32 ? 'fulfilled' : 'rejected')),
    )
    expect(await made.submit('a', large)).toBe(large)
  })

  test('shares batches and the quota out by account, so that one that writes much holds up nobody', async () => {
    const { group: made, batches } = group()
    const large = 'h'.repeat(MiB)
    const hog = Promise.allSettled(Array.from({ length: 100 }, () => made.submit('hog', large)))
    await Promise.all(['b', 'c'].map((account) => made.submit(account, account)))
    expect(batches[0]?.map((text) => text.slice(0, 1))).toEqual(['h', 'b', 'c', 'h', 'h', 'h'])
    expect((await hog).filter(({ status }) => status === 'fulfilled')).toHaveLength(32)
  })

  test('serves each account in its turn, however many write more than fits into a batch', async () => {
    const { group: made, batches } = group()
    const accounts = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    // Four of these fill a batch.
    await Promise.all(
      accounts.flatMap((account) => [1, 2].map(() => made.submit(account, account.repeat(MiB)))),
    )
    const served = batches.map((batch) => batch.map((text) => text.slice(0, 1)).join(''))
    expect(served).toEqual(['abcd', 'efgh', 'abcd', 'efgh'])
  })
})
