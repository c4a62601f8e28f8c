// How `plants serve` ends, by the clock: which signals count, and how long a stop waits.
import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { run } from '../../src/cli/commands.ts'
import { ManualClock, until } from '../support/clock.ts'
import { launcher } from '../support/process.ts'
import { unfinishedRequest } from '../support/rawSocket.ts'
import { folderMaker } from '../support/service.ts'

const folder = folderMaker()

/** The command in this process, in a world of its own. */
class Serving {
  readonly clock = new ManualClock()
  /** What it printed. */
  out = ''
  /** Sends a signal. */
  signal = (): void => {}
  /** With which codes it ended the process at once. */
  readonly exits: number[] = []
  /** With which code it ended by itself. */
  code: number | undefined
  readonly #log = join(folder(), 'log')

  constructor(store: string) {
    const world = {
      launcher,
      environment: {},
      print: (text: string) => {
        this.out += `${text}\n`
      },
      write: () => Promise.resolve(),
      tell: () => {},
      draw: () => {},
      inputDescriptor: 0,
      inputIsTerminal: false,
      ask: () => Promise.resolve(''),
      outputIsTerminal: false,
      errorDescriptor: openSync(this.#log, 'w'),
      errorIsTerminal: false,
      clock: this.clock,
      randomBytes,
      onStopRequest: (stop: (signal: 'SIGTERM') => void) => {
        this.signal = () => stop('SIGTERM')
      },
      exit: (code: number) => this.exits.push(code) as never,
    }
    void run(['serve', '--port', '0', '--first-token', '--store', store], world).then((code) => {
      this.code = code
    })
  }

  /** What it logged: after how many seconds, and the message. */
  get logged(): readonly string[] {
    const lines = readFileSync(this.#log, 'utf8').trim().split('\n')
    return lines.map((line) => {
      const { time, message } = JSON.parse(line)
      return `${time.slice(17, -1)} ${message}`
    })
  }
}

/** Serves a client that never finishes. */
async function withUnfinishedRequest(use: (serving: Serving) => Promise<void>): Promise<void> {
  const serving = new Serving(`sqlite:${folder()}/plants.db`)
  await until('it listens', () => serving.out.includes('listening on'))
  const [, token = ''] = /PLANTS_TOKEN=(\S+)/.exec(serving.out) ?? []
  const [, url = ''] = /listening on (\S+)/.exec(serving.out) ?? []
  const socket = await unfinishedRequest(url, token)
  await use(serving)
  // A process would be gone; here the stop goes on, and must end.
  socket.destroy()
  await until('it has ended', async () => {
    await serving.clock.advance(10)
    return serving.code === 0
  })
}

describe('a stop while a request is under way', () => {
  test('takes signals within 200 ms for one, is forced by the second, and given up at the third', () =>
    withUnfinishedRequest(async (serving) => {
      serving.signal()
      await serving.clock.advance(200)
      serving.signal()
      await serving.clock.advance(1)
      serving.signal()
      await until('it exits', () => serving.exits.length > 0)
      expect(serving.logged.at(-1)).toBe('00.201 stopped by force: 1 request was cut')
      await serving.clock.advance(201)
      serving.signal()
      expect(serving.exits).toEqual([1, 1])
    }))

  test('is forced after ten seconds', () =>
    withUnfinishedRequest(async (serving) => {
      serving.signal()
      await serving.clock.advance(10_000)
      await until('it exits', () => serving.exits.length > 0)
      expect(serving.exits).toEqual([1])
      expect(serving.logged.at(-1)).toBe('10.000 stopped by force: 1 request was cut')
    }))
})

test('a stop during the start waits one second for its end', async () => {
  const mute = createServer().listen(0, '127.0.0.1')
  const connected = once(mute, 'connection')
  await once(mute, 'listening')
  const { port } = mute.address() as AddressInfo
  const serving = new Serving(`postgres://u:secret@127.0.0.1:${port}/x`)
  const [socket] = await connected
  serving.signal()
  await serving.clock.advance(1000)
  await until('it ends', () => serving.code !== undefined)
  expect([serving.code, serving.out]).toEqual([0, ''])
  expect(serving.logged).toEqual(['01.000 stopping during the start', '01.000 stopped'])
  socket.destroy()
  mute.close()
})
