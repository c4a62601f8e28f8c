// What the benchmark asks, and whether its numbers can be trusted.
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { rotated } from './bench.ts'
import type { Order, Outcome } from './openLoop.ts'
import type { Results } from './parts.ts'
import {
  creates,
  deletes,
  listsOf20,
  listsOf1000,
  mix,
  requestParts,
  stepAt,
  stockOffset,
  type Workload,
} from './workloads.ts'

describe('a workload', () => {
  test.each([creates, deletes, listsOf20, listsOf1000, mix])(
    '$name sends whole requests',
    ({ steps }) => {
      for (const step of steps) {
        const text = requestParts(step, 'localhost', 'a-token').join('1234567890')
        const [head = '', body = ''] = text.split('\r\n\r\n')
        expect(head).toMatch(
          /^(GET|POST|DELETE) \/plants\S* HTTP\/1\.1\r\nHost: localhost\r\nAuthorization: Bearer a-token/,
        )
        expect(Number(/Content-Length: (\d+)/.exec(head)?.[1] ?? 0)).toBe(body.length)
      }
    },
  )

  test.each([creates, mix])(
    '$name creates no plant twice, and deletes those of its stock in turn',
    (workload: Workload) => {
      const created = new Set<number>()
      let deleted = 0
      for (let n = 0; n < 20_000; n += 1) {
        const { step, number } = stepAt(workload, n)
        if (step.kind === 'create') {
          expect(created.has(number) || number >= stockOffset).toBeFalse()
          created.add(number)
        } else if (step.kind === 'delete') {
          expect(number).toBe(stockOffset + deleted)
          deleted += 1
        }
      }
    },
  )

  test('mix is 70 % lists, 20 % creates and 10 % deletes', () => {
    const kinds = Array.from({ length: 1000 }, (_, n) => stepAt(mix, 100_000 + n).step.kind)
    expect(
      Object.fromEntries(
        [...Map.groupBy(kinds, (kind) => kind)].map(([kind, of]) => [kind, of.length]),
      ),
    ).toEqual({
      list: 700,
      create: 200,
      delete: 100,
    })
  })
})

test('every round begins with another contender, and none always follows the same one', () => {
  const names = ['a', 'b', 'c']
  const orders = [0, 1, 2, 3].map((round) => rotated(names, round).join(''))
  expect(orders).toEqual(['abc', 'bac', 'cab', 'acb'])
  expect([0, 1].map((round) => rotated(['a', 'b'], round).join(''))).toEqual(['ab', 'ba'])
})

describe('the generator of a constant rate', () => {
  const stream = { name: 'lists', workload: listsOf20, base: 0, connections: 1, ratePerSecond: 100 }

  test('counts the wait of every request that was due while the server stood still', async () => {
    let firstMs: number | undefined
    let stoodStill = false
    const [outcome] = await against((socket) => {
      firstMs ??= performance.now()
      if (!stoodStill && performance.now() - firstMs > 700) {
        stoodStill = true
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
      }
      socket.write(answer)
    })
    // A generator that sends nothing while it waits would have met the pause once, among some fifty
    // quick answers.
    expect(outcome?.p50Ms).toBeGreaterThan(100)
    expect(outcome?.maxMs).toBeGreaterThan(900)
    expect(outcome?.failed).toBe(0)
  })

  test('reads answers that come in pieces, and those without a body', async () => {
    let answers = 0
    const [outcome] = await against((socket) => {
      answers += 1
      if (answers % 2 === 0) socket.write('HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n')
      else {
        socket.write(answer.slice(0, 20))
        setTimeout(() => socket.write(answer.slice(20, -1)), 1)
        setTimeout(() => socket.write(answer.slice(-1)), 2)
      }
    })
    expect(outcome?.failed).toBe(0)
    expect(outcome?.answeredPerSecond).toBeGreaterThan(50)
  })

  test('counts what failed: another status, a lost connection, no answer', async () => {
    const [refused] = await against((socket) =>
      socket.write('HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}'),
    )
    expect(refused?.failed).toBeGreaterThan(50)
    const [lost] = await against((socket) => socket.end())
    expect(lost?.failed).toBeGreaterThan(0)
    const [surplus] = await against((socket) => socket.write(`${answer}more`))
    expect(surplus?.failed).toBeGreaterThan(0)
  }, 60_000)

  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]'

  /**
   * Runs the generator in its own process, as the benchmark does, against a server that is asked
   * one thing at a time.
   */
  async function against(asked: (socket: Bun.Socket) => void): Promise<readonly Outcome[]> {
    const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: asked } })
    const order: Order = {
      url: `http://127.0.0.1:${server.port}`,
      token: 'a-token',
      seconds: 2,
      streams: [stream],
    }
    const child = Bun.spawn(['scripts/bun', 'lab/openLoop.ts', JSON.stringify(order)], {
      stdout: 'pipe',
    })
    const output = await new Response(child.stdout).text()
    server.stop(true)
    return JSON.parse(output)
  }
})

describe('the paper', () => {
  const folder = 'docs/benchmarks'
  const svgFiles = readdirSync(folder).filter((file) => file.endsWith('.svg'))
  const results = JSON.parse(readFileSync(`${folder}/results.json`, 'utf8')) as Results

  // What draws them comes with the lab's own packages, which CI installs.
  const isExcused = !existsSync('lab/node_modules') && !process.env['CI']
  test.skipIf(isExcused)('shows the plots of its results', async () => {
    const { plots } = await import('./plots.ts')
    const drawn = await plots(results)
    expect(Object.keys(drawn).length).toBe(svgFiles.length)
    for (const [name, svg] of Object.entries(drawn))
      expect(readFileSync(`${folder}/${name}.svg`, 'utf8')).toBe(svg)
  })

  test('refers to files that are there', () => {
    const text = readFileSync('docs/benchmarks.md', 'utf8')
    const files = [...text.matchAll(/\]\((?!http)([^)#]+)\)/g)].map(([, file]) => `docs/${file}`)
    expect(files.filter((file) => !existsSync(file))).toEqual([])
    expect(files.filter((file) => file.endsWith('.svg')).length).toBe(svgFiles.length)
  })
})
