// Long answers for slow readers, by the clock: who is cut off for whom, and how long anybody waits.
import { describe, expect, test } from 'bun:test'
import { type Ending, LongAnswers } from '../../src/http/longAnswers.ts'
import { Pace } from '../../src/http/pace.ts'
import type { Pieces, Room } from '../../src/http/reply.ts'
import { ManualClock, settled } from '../support/clock.ts'

const mebi = 1024 * 1024

/** Long answers that may hold 50 MiB, of which rooms leave 16 MiB for pieces. */
class Readers {
  readonly clock = new ManualClock()
  readonly #answers = new LongAnswers(50 * mebi, new Pace(), this.clock)
  /** What became of readers and of those who asked for room, in its order. */
  readonly events: string[] = []
  /** Accounts whose clients have left. */
  readonly gone = new Set<string>()

  /** Asks for room; resolves to it if it has come when nothing more happens by itself. */
  async room(account: string, bytes: number): Promise<Room | undefined> {
    let given: Room | undefined
    this.#answers
      .room(account, bytes, () => this.gone.has(account))
      .then(
        (room) => {
          given = room
          this.events.push(`room for ${account}`)
        },
        (error: Error) => this.events.push(`${account}: ${error.message}`),
      )
    await settled()
    return given
  }

  /** Lets a reader take one piece and then stand still. */
  async stand(name: string, room: Room | undefined, pieces: Pieces = twoPieces): Promise<void> {
    const stream = this.#answers.send(
      pieces,
      room,
      () => this.events.push(`${name}: hung up`),
      ({ bytes, complete }: Ending) =>
        this.events.push(`${name}: ${complete ? 'complete' : 'broken off'} after ${bytes} bytes`),
    )
    void stream
      .getReader()
      .read()
      .then(() => this.events.push(`${name}: has a piece`))
    await settled()
  }
}

async function* twoPieces(): AsyncGenerator<string> {
  yield 'one'
  yield 'two'
}

describe('a long answer', () => {
  test('makes a piece only when its reader asks for it', async () => {
    const readers = new Readers()
    let made = 0
    await readers.stand('reader', undefined, async function* () {
      for (;;) {
        made += 1
        yield 'piece'
      }
    })
    await readers.clock.advance(60_000)
    expect(made).toBe(1)
    expect(readers.events).toEqual(['reader: has a piece'])
  })

  test('waits with its next piece while others hold the memory, until one of them is cut off', async () => {
    const readers = new Readers()
    const holding = (bytes: number): Pieces =>
      async function* (holds) {
        holds(bytes)
        yield 'one'
      }
    await readers.stand('first', undefined, holding(30 * mebi))
    await readers.stand('second', undefined, holding(30 * mebi))
    await readers.clock.advance(1)
    await readers.stand('third', undefined, holding(0))
    const before = ['first: has a piece', 'second: has a piece']
    await readers.clock.advance(4998)
    expect(readers.events).toEqual(before)
    await readers.clock.advance(20)
    expect(readers.events).toEqual([
      ...before,
      'first: broken off after 3 bytes',
      'first: hung up',
      'third: has a piece',
    ])
  })
})

describe('room for a long answer', () => {
  test('is made by cutting off the reader that has stood still longest, after five seconds', async () => {
    const readers = new Readers()
    await readers.stand('first', await readers.room('a', 17 * mebi))
    await readers.clock.advance(1000)
    await readers.stand('second', await readers.room('b', 17 * mebi))
    await readers.room('c', 17 * mebi)
    const before = ['room for a', 'first: has a piece', 'room for b', 'second: has a piece']
    await readers.clock.advance(3999)
    expect(readers.events).toEqual(before)
    await readers.clock.advance(1)
    expect(readers.events).toEqual([
      ...before,
      'first: broken off after 3 bytes',
      'first: hung up',
      'room for c',
    ])
  })

  test('is given to the account that holds least', async () => {
    const readers = new Readers()
    await readers.room('a', 4 * mebi)
    const room = await readers.room('b', 30 * mebi)
    for (const account of ['a', 'c']) await readers.room(account, 30 * mebi)
    await readers.clock.advance(1000)
    room?.release()
    await readers.clock.advance(20)
    expect(readers.events).toEqual(['room for a', 'room for b', 'room for c'])
  })

  test('is refused if none comes free within ten seconds', async () => {
    const readers = new Readers()
    await readers.room('a', 34 * mebi)
    await readers.room('b', 34 * mebi)
    await readers.clock.advance(10_000)
    expect(readers.events).toEqual(['room for a'])
    await readers.clock.advance(20)
    expect(readers.events.slice(1)).toEqual([
      'b: Too many long lists are under way; nothing was done, try again.',
    ])
  })

  test('is not waited for any longer if the client has left', async () => {
    const readers = new Readers()
    await readers.room('a', 34 * mebi)
    await readers.room('b', 34 * mebi)
    readers.gone.add('b')
    await readers.clock.advance(20)
    expect(readers.events.slice(1)).toEqual(['b: The client has left; nothing was done.'])
  })
})
