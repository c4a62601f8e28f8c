// `plants serve` as a black box: what it says, how it starts and stops, and what it refuses.
import { describe, expect, test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { until } from '../support/clock.ts'
import {
  accepts,
  freePort,
  launcher,
  makeStore,
  type Running,
  run,
  serve,
  start,
  tokenFor,
} from '../support/process.ts'
import { exchange, statuses, unfinishedBytes, unfinishedRequest } from '../support/rawSocket.ts'
import { call, folderMaker } from '../support/service.ts'

const folder = folderMaker()

describe('plants serve', () => {
  test('says where it listens, alone on its line, once it can answer, and prints no secret', async () => {
    const home = folder()
    const server = serve(home)
    const url = await server.url
    expect((await call(url, 'GET', '/readyz')).status).toBe(200)
    expect(server.out()).toBe(`plants: listening on ${url}\n`)
    const hint = `${launcher} token issue --account NAME --store sqlite:${home}/plants.db`
    await until('it hints', () => server.err().includes(hint))
    expect(server.err()).toContain(`"made a new store: ${home}/plants.db"`)
    expect(server.err()).toContain(`the store holds no token; issue one with: ${hint}"`)
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  })

  test('takes its settings from the environment too, but a flag wins', async () => {
    const home = folder()
    const server = start(['serve', '--port', '0'], home, {
      PLANTS_PORT: '1',
      PLANTS_STORE: 'sqlite:other.db',
      PLANTS_FIRST_TOKEN: '1',
    })
    await server.url
    expect((await run(['token', 'list', '--store', 'sqlite:other.db'], home)).out).toContain(
      'first token',
    )
    server.process.kill('SIGINT')
    expect((await server.finished).code).toBe(0)
  })

  test('reads neither .env nor bunfig.toml of the folder it is started in', async () => {
    const home = folder()
    writeFileSync(join(home, '.env'), 'PLANTS_PORT=99999\n')
    writeFileSync(join(home, 'bunfig.toml'), 'preload = ["./evil.ts"]\n')
    writeFileSync(join(home, 'evil.ts'), 'process.exit(66)\n')
    const server = serve(home)
    await server.url
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  })

  test('runs through a symbolic link, from any folder', async () => {
    const home = folder()
    symlinkSync(join(import.meta.dir, '../../bin/plants'), join(home, 'linked'))
    const { stdout, exitCode } = Bun.spawnSync([join(home, 'linked'), '--version'], { cwd: '/' })
    expect([exitCode, stdout.toString()]).toEqual([0, '1.0.0\n'])
  })

  test('makes no store if the folder it is started in is gone', () => {
    const gone = join(folder(), 'gone')
    const script = 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$0" serve --port 0'
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script, launcher, gone], {
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toEndWith(
      'plants: the folder that this was started in is gone; go to another one first.\n',
    )
  })

  test('with --first-token prints one token, and requests that work as they stand', async () => {
    const home = folder()
    const server = serve(home, '--first-token')
    const url = await server.url
    expect(server.out()).toEndWith(
      `${url}/docs\nCtrl-C stops the service.\n\nplants: listening on ${url}\n`,
    )
    const token = /export PLANTS_TOKEN=(plants_\w+)/.exec(server.out())?.[1] ?? ''
    const requests = server.out().match(/^ {2}curl .*$/gm) ?? []
    expect(requests).toHaveLength(3)
    const answers = requests.map((request) =>
      Bun.spawnSync(['sh', '-c', request], {
        env: { ...process.env, PLANTS_TOKEN: token },
      }).stdout.toString(),
    )
    expect(answers.map((answer) => statuses(answer))).toEqual([[200], [200], [204]])
    expect(answers[0]).toEndWith('{"name":"Monstera deliciosa","tag":"indoor"}\n')
    expect(answers[1]).toEndWith('[{"name":"Monstera deliciosa","tag":"indoor"}]\n')
    for (const request of requests) expect(request).not.toContain('--json')
    expect(server.err()).not.toContain(token)
    server.process.kill('SIGTERM')
    await server.finished
    const again = serve(home, '--first-token')
    await again.url
    expect(again.out()).toStartWith(
      `The store holds tokens already. Issue another for the same account with: ${launcher} token issue --account default --store sqlite:${home}/plants.db\nplants: listening on `,
    )
    expect(again.out()).not.toContain('plants_')
    again.process.kill('SIGTERM')
    await again.finished
  })

  test.each([
    ['0.0.0.0', '127.0.0.1'],
    ['::', '[::1]'],
  ])('on every address (%s) shows requests to %s', async (host, shown) => {
    const server = serve(folder(), '--first-token', '--host', host)
    const { port } = new URL(await server.url)
    const requests = server.out().match(/^ {2}curl .*$/gm) ?? []
    for (const request of requests)
      expect(request.replaceAll("'", '')).toContain(` http://${shown}:${port}/plants`)
    expect(requests).toHaveLength(3)
    expect(server.out()).toContain(`http://${shown}:${port}/docs`)
    server.process.kill('SIGTERM')
    await server.finished
  })

  test('says what an operator should know before it says that it listens', async () => {
    const home = folder()
    const saidBy = async (flags: string): Promise<string> => {
      const child = spawn('sh', ['-c', `exec "$0" serve --port 0 ${flags} 2>&1`, launcher], {
        cwd: home,
      })
      let said = ''
      for await (const data of child.stdout) {
        said += data
        if (said.includes('plants: listening on ')) child.kill('SIGTERM')
      }
      return said
    }
    expect(await saidBy('')).toMatch(
      /the store is.*the store holds no token.*plants: listening on /s,
    )
    expect(await saidBy('--first-token')).toMatch(
      /the store is.*export PLANTS_TOKEN=.*plants: listening on /s,
    )
  })

  test('writes a JSON line for each request on standard error', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const server = serve(home, '--trust-proxy', 'loopback')
    const url = await server.url
    await call(url, 'POST', '/plants', {
      token,
      body: '{"id":1,"name":"x"}',
      headers: { 'X-Request-Id': 'mine', 'X-Forwarded-For': '203.0.113.9' },
    })
    await call(url, 'GET', '/plants/\u{1f335}', { token })
    server.process.kill('SIGTERM')
    const { err } = await server.finished
    const [{ id }] = JSON.parse((await run(['token', 'list', '--json'], home)).out)
    const lines = err
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const requests = lines.filter((line) => line.method !== undefined)
    expect(requests[0]).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      level: 'info',
      method: 'POST',
      route: '/plants',
      status: 200,
      durationMs: expect.any(Number),
      bytes: 12,
      account: 'a',
      tokenId: id,
      client: '203.0.113.9',
      requestId: 'mine',
    })
    expect(requests[1]).toMatchObject({
      method: 'GET',
      route: null,
      status: 405,
      account: null,
      tokenId: null,
    })
    expect(err).not.toContain(token.slice(7, 30))
  })
})

describe.concurrent('plants serve stops', () => {
  test('at SIGHUP as at SIGTERM', async () => {
    const server = serve(folder())
    await server.url
    server.process.kill('SIGHUP')
    const { code, err } = await server.finished
    expect([code, err]).toEqual([0, expect.stringContaining('"message":"stopped"')])
  })

  test.serial('during the start, without half a store or a token that nobody saw', async () => {
    for (let round = 0; round < 5; round += 1) {
      const home = folder()
      const server = serve(home, '--first-token')
      const endMs = performance.now() + 10_000
      while (readdirSync(home).length === 0 && performance.now() < endMs)
        await new Promise((resolve) => setImmediate(resolve))
      server.process.kill('SIGTERM')
      const { code, out } = await server.finished
      expect(code).toBe(0)
      expect(readdirSync(home)).toEqual(['plants.db'])
      const listed = (await run(['token', 'list', '--json', '--store', 'sqlite:plants.db'], home))
        .out
      expect(listed.includes('first token')).toBe(out.includes('PLANTS_TOKEN='))
    }
  })

  test('during the start, though another process holds the lock of the store', async () => {
    const home = folder()
    await makeStore(home)
    const holder = new DatabaseSync(join(home, 'plants.db'))
    holder.exec('begin immediate')
    const port = await freePort()
    const server = start(['serve', '--port', port, '--store', 'sqlite:plants.db'], home)
    // It listens before it opens the store.
    await accepts(port)
    const stoppedMs = performance.now()
    server.process.kill('SIGTERM')
    const { code, out, err } = await server.finished
    expect([code, out]).toEqual([0, ''])
    expect(err).toContain('"message":"stopping during the start"')
    expect(performance.now() - stoppedMs).toBeLessThan(6000)
    holder.close()
  }, 30_000)

  test.skipIf(process.platform !== 'linux')('not at SIGHUP if nohup started it', async () => {
    const child = spawn('nohup', [launcher, 'serve', '--port', '0'], {
      cwd: folder(),
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let url: string | undefined
    for await (const data of child.stdout) {
      url = /listening on (\S+)/.exec(String(data))?.[1] ?? url
      if (url !== undefined) break
    }
    child.kill('SIGHUP')
    // Each comes on a connection of its own, and a service that stops would take none.
    const ready = 'GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    for (let times = 0; times < 5; times += 1)
      expect((await exchange(url ?? '', [ready])).received).toStartWith('HTTP/1.1 200 ')
    child.kill('SIGTERM')
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0)
  })

  test('after what is under way is finished, and keeps the data', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const server = serve(home)
    const url = await server.url
    const idle = exchange(url, ['GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'])
    const slow = await unfinishedRequest(url, token)
    const answer = once(slow, 'data')
    server.process.kill('SIGTERM')
    await until('no connections are taken', () =>
      fetch(`${url}/livez`).then(
        () => false,
        () => true,
      ),
    )
    slow.write('"id":1,"name":"slow"}'.padEnd(unfinishedBytes))
    expect(String(await answer)).toMatch(/^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is)
    expect((await idle).closed).toBe(true)
    expect((await server.finished).code).toBe(0)
    const again = serve(home)
    expect((await call(await again.url, 'GET', '/plants', { token })).text).toBe(
      '[{"name":"slow"}]',
    )
    again.process.kill('SIGTERM')
    await again.finished
  })

  test('at once if a connection has sent but half a header', async () => {
    const server = serve(folder())
    const url = await server.url
    const half = exchange(url, ['GET /livez HTTP/1.1\r\nHo'])
    expect((await call(url, 'GET', '/livez')).status).toBe(200)
    const stoppedMs = performance.now()
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
    expect(performance.now() - stoppedMs).toBeLessThan(3000)
    expect((await half).closed).toBe(true)
  })

  test('at once at a second signal, though a client never finishes', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const server = serve(home)
    const url = await server.url
    const socket = await unfinishedRequest(url, token)
    server.process.kill('SIGTERM')
    // Two signals within 200 ms are one.
    await Bun.sleep(300)
    expect(server.process.exitCode).toBeNull()
    server.process.kill('SIGTERM')
    const { code, err } = await server.finished
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('"message":"stopped by force: 1 request was cut"'),
    ])
    socket.destroy()
  })

  test('by itself after ten seconds, though a client never finishes', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const server = serve(home)
    const url = await server.url
    const sockets = [await unfinishedRequest(url, token), await unfinishedRequest(url, token)]
    const stoppedMs = performance.now()
    server.process.kill('SIGTERM')
    const { code, err } = await server.finished
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('"message":"stopped by force: 2 requests were cut"'),
    ])
    expect(performance.now() - stoppedMs).toBeWithin(9000, 14_000)
    for (const socket of sockets) socket.destroy()
  }, 20_000)
})

const onLinux = describe.concurrent.skipIf(process.platform !== 'linux')

onLinux('plants serve without a file descriptor left', () => {
  /** Processor time of a process in seconds. */
  const processorSeconds = (pid: number | undefined): number => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
    return (Number(fields[13]) + Number(fields[14])) / 100
  }

  /** Serves with so few descriptors. */
  const serveWith = (descriptors: number): Running => {
    const home = folder()
    const limited = join(home, 'limited')
    writeFileSync(limited, `#!/bin/sh\nulimit -n ${descriptors}\nexec ${launcher} "$@"\n`, {
      mode: 0o755,
    })
    return start(['serve', '--port', '0'], home, {}, limited)
  }

  /** When it said that there is no descriptor left. */
  const exhaustedAtMs = (server: Running): number[] => {
    const lines = server.err().split('\n')
    return lines
      .filter((line) => line.includes('out of file descriptors') && line.endsWith('}'))
      .map((line) => Date.parse(JSON.parse(line).time))
  }

  test.each([150, 40])(
    'of %i does not spin, says so, and takes connections again once there are some',
    async (descriptors) => {
      const server = serveWith(descriptors)
      const url = await server.url
      const sockets = Array.from({ length: 300 }, () =>
        connect(Number(new URL(url).port), '127.0.0.1'),
      )
      for (const socket of sockets) socket.on('error', () => {})
      await until('none is left', () => exhaustedAtMs(server).length > 0)
      const before = processorSeconds(server.process.pid)
      await Bun.sleep(1000)
      expect(processorSeconds(server.process.pid) - before).toBeLessThan(0.3)
      for (const socket of sockets) socket.destroy()
      await until('connections are taken', () => server.err().includes('taken again'))
      expect((await call(url, 'GET', '/readyz')).status).toBe(200)
      expect(exhaustedAtMs(server)).toHaveLength(1)
      server.process.kill('SIGTERM')
      expect((await server.finished).code).toBe(0)
    },
    30_000,
  )

  test('changes no more than once a second, though clients come back at once', async () => {
    const server = serveWith(40)
    const { port } = new URL(await server.url)
    const sockets = new Set<Socket>()
    let isOver = false
    const come = (): void => {
      if (isOver) return
      const socket = connect(Number(port), '127.0.0.1')
      socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        setTimeout(come, 20)
      })
    }
    for (let clients = 0; clients < 60; clients += 1) come()
    await until('none is left for the third time', () => exhaustedAtMs(server).length === 3)
    isOver = true
    for (const socket of sockets) socket.destroy()
    const [first = 0, second = 0, third = 0] = exhaustedAtMs(server)
    expect(second - first).toBeGreaterThan(1000)
    expect(third - second).toBeGreaterThan(1000)
    server.process.kill('SIGTERM')
    expect((await server.finished).code).toBe(0)
  }, 30_000)
})

describe('plants serve refuses to start', () => {
  test('with every wrong setting at once, and exit code 2', async () => {
    const { code, out, err } = await run(
      ['serve', '--port', '70000', '--host', 'a b', '--wat', '--store=redis:x', 'more'],
      folder(),
      { PLANTS_FIRST_TOKEN: 'toString' },
    )
    expect([code, out]).toEqual([2, ''])
    expect(err.trimEnd().split('\n')).toEqual([
      'plants: --wat is not known to this command.',
      'plants: --host must be an IP address or a host name alone, without brackets, scheme or port (see --port), not "a b".',
      'plants: --port must be a number from 0 to 65535, not "70000".',
      'plants: --store must be sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE, not "redis:x".',
      'plants: PLANTS_FIRST_TOKEN must be true or false, not "toString".',
      'plants: "more" is one argument too many.',
      `See: ${launcher} serve --help`,
    ])
  })

  test('with a variable that is nearly one of its own, and ignores others', async () => {
    const { code, err } = await run(['serve', '--port', '0'], folder(), {
      PLANTS_PROT: '8081',
      PLANTS_TOKEN: 'x',
      PLANTS_OTHER: 'y',
    })
    expect([code, err]).toEqual([
      2,
      `plants: PLANTS_PROT is not known; did you mean PLANTS_PORT?\nSee: ${launcher} serve --help\n`,
    ])
  })

  test.each(['-1', '', '8o', '1e3', '65536', ' 80'])('with the port %j', async (port) => {
    const { code, err } = await run(['serve', `--port=${port}`], folder())
    expect(code).toBe(2)
    expect(err).toStartWith('plants: --port must be a number from 0 to 65535')
  })

  test('on a port that is taken', async () => {
    const taken = serve(folder())
    const { port } = new URL(await taken.url)
    const home = folder()
    const { code, out, err } = await run(['serve', '--port', port], home)
    expect([code, out]).toEqual([1, ''])
    expect(readdirSync(home)).toEqual([])
    expect(err).toBe(
      `plants: Cannot listen on 127.0.0.1 port ${port}: another program listens there; choose another --port, or 0 for a free one.\n`,
    )
    taken.process.kill('SIGTERM')
    await taken.finished
  })

  test('on an address that is not this machine’s', async () => {
    const { code, err } = await run(['serve', '--port', '0', '--host', '203.0.113.1'], folder())
    expect(code).toBe(1)
    expect(err).toMatch(/^plants: Cannot listen on 203\.0\.113\.1 port 0: .*\.\n$/)
  })

  test('with a store that cannot be one', async () => {
    const home = folder()
    writeFileSync(join(home, 'text.db'), 'this is no database\n'.repeat(100))
    for (const [store, sentence] of [
      [
        'sqlite:text.db',
        `The store ${home}/text.db cannot be used: the file is not a database; name another file, or restore a backup.`,
      ],
      [
        'sqlite:none/plants.db',
        `The store ${home}/none/plants.db cannot be used: its folder does not exist; make it first.`,
      ],
    ] as const) {
      const { code, out, err } = await run(['serve', '--port', '0', '--store', store], home)
      expect([code, out, err]).toEqual([1, '', `plants: ${sentence}\n`])
    }
  })
})

describe('two servers on one file', () => {
  test('agree: each sees what the other acknowledged, and one creator of an id wins', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const servers = [serve(home), serve(home)]
    const urls = await Promise.all(servers.map(({ url }) => url))
    const on = (n: number): string => urls[n % 2] ?? ''
    for (let id = 0; id < 40; id += 1) {
      expect(
        (await call(on(id), 'POST', '/plants', { token, body: `{"id":${id},"name":"${id}"}` }))
          .status,
      ).toBe(200)
      expect((await call(on(id + 1), 'DELETE', `/plants/${id}`, { token })).status).toBe(204)
    }
    for (let id = 100; id < 110; id += 1) {
      const racers = Array.from({ length: 16 }, (_, n) =>
        call(on(n), 'POST', '/plants', { token, body: `{"id":${id},"name":"${n}"}` }),
      )
      expect((await Promise.all(racers)).filter(({ status }) => status === 200)).toHaveLength(1)
    }
    for (const { process } of servers) process.kill('SIGTERM')
    for (const { finished } of servers) expect((await finished).code).toBe(0)
  }, 30_000)
})

describe.concurrent('a command beside a server whose log was removed', () => {
  test.each([[['-shm']], [['-wal']], [['-wal', '-shm']]])(
    'does nothing and says so: %j',
    async (endings) => {
      const home = folder()
      const store = 'sqlite:plants.db'
      const token = await tokenFor('a', home)
      const [, id = ''] =
        /"id":\s*"(\w+)"/.exec(
          (await run(['token', 'list', '--json', '--store', store], home)).out,
        ) ?? []
      const server = serve(home)
      const url = await server.url
      expect(
        (await call(url, 'POST', '/plants', { token, body: '{"id":1,"name":"x"}' })).status,
      ).toBe(200)
      const files = endings.map((ending) => join(home, `plants.db${ending}`))
      for (const file of files) rmSync(file)
      expect(await run(['token', 'revoke', id, '--store', store], home)).toEqual({
        code: 1,
        out: '',
        err: `plants: The store ${home}/plants.db cannot be used: it is in use, but ${files.join(' and ')} is missing, so that was removed while in use; stop the service that uses it, and try again.\n`,
      })
      for (const file of files) expect(existsSync(file)).toBe(false)
      expect(
        (await call(url, 'POST', '/plants', { token, body: '{"id":2,"name":"x"}' })).status,
      ).toBe(503)
      server.process.kill('SIGTERM')
      expect((await server.finished).code).toBe(0)
      expect((await run(['token', 'revoke', id, '--store', store], home)).code).toBe(0)
      const again = serve(home)
      expect((await call(await again.url, 'GET', '/plants', { token })).status).toBe(401)
      again.process.kill('SIGTERM')
      await again.finished
    },
    30_000,
  )
})

describe('a copy of the file and its log without the index', () => {
  test('is opened and holds all that was acknowledged', async () => {
    const home = folder()
    const token = await tokenFor('a', home)
    const server = serve(home)
    const url = await server.url
    expect(
      (await call(url, 'POST', '/plants', { token, body: '{"id":1,"name":"x"}' })).status,
    ).toBe(200)
    const copy = folder()
    for (const name of ['plants.db', 'plants.db-wal'])
      copyFileSync(join(home, name), join(copy, name))
    server.process.kill('SIGKILL')
    await server.finished
    rmSync(join(home, 'plants.db-shm'))
    for (const place of [home, copy]) {
      const again = serve(place)
      expect((await call(await again.url, 'GET', '/plants', { token })).text).toBe('[{"name":"x"}]')
      again.process.kill('SIGTERM')
      expect((await again.finished).code).toBe(0)
    }
  }, 30_000)
})

describe('npm start', () => {
  test('refuses flags that npm kept for itself, and says where they belong', async () => {
    const home = folder()
    const { status, stdout, stderr } = spawnSync(
      'npm',
      [
        'start',
        '--prefix',
        join(import.meta.dir, '../..'),
        '--port',
        '8081',
        '--store=sqlite:x.db',
      ],
      {
        cwd: home,
        encoding: 'utf8',
        env: { ...process.env, PLANTS_STORE: `sqlite:${home}/plants.db` },
      },
    )
    expect(status).toBe(2)
    expect(stdout).not.toContain('listening')
    expect(stderr).toContain('plants: npm kept --port for itself; write: npm start -- --port ')
    expect(stderr).toContain(
      'plants: npm kept --store for itself; write: npm start -- --store sqlite:x.db\n',
    )
    expect(stderr).not.toContain('too many')
    expect(readdirSync(home)).toEqual([])
  }, 30_000)

  test.each([
    [{ npm_config_port: 'true' }, ['8081'], '--port 8081'],
    [{ npm_config_port: '8081' }, [], '--port 8081'],
    [{ npm_config_host: '0.0.0.0' }, [], '--host 0.0.0.0'],
    [{ npm_config_store: 'postgres://u:secret@h/x' }, [], '--store URL'],
    [{ npm_config_first_token: 'true' }, [], '--first-token'],
  ])('knows such a flag by %j', async (variables, args, flag) => {
    const { code, out, err } = await run(['serve', '--first-token', ...args], folder(), {
      ...(variables as Record<string, string>),
      npm_lifecycle_event: 'start',
    })
    const [name] = flag.split(' ')
    expect([code, out, err]).toEqual([
      2,
      '',
      `plants: npm kept ${name} for itself; write: npm start -- ${flag}\nSee: ${launcher} serve --help\n`,
    ])
  })

  test('passes a signal on and ends with the service', async () => {
    const home = folder()
    const npm = spawn('npm', ['start', '--prefix', join(import.meta.dir, '../..')], {
      cwd: home,
      env: { ...process.env, PLANTS_PORT: '0', PLANTS_STORE: `sqlite:${home}/plants.db` },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let out = ''
    npm.stdout.on('data', (data) => {
      out += data
    })
    await until('it listens', () => /listening on \S+\n/.test(out))
    const url = /listening on (\S+)/.exec(out)?.[1] ?? ''
    expect((await call(url, 'GET', '/readyz')).status).toBe(200)
    npm.kill('SIGTERM')
    expect(await new Promise((resolve) => npm.on('close', resolve))).toBe(0)
    await expect(fetch(`${url}/livez`)).rejects.toThrow()
  }, 30_000)

  test('takes Ctrl-C, which reaches the service twice, for one request to stop', async () => {
    const server = serve(folder())
    await server.url
    server.process.kill('SIGINT')
    server.process.kill('SIGINT')
    expect((await server.finished).code).toBe(0)
  })
})
