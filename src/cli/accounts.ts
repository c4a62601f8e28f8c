// The commands on accounts: "account list" shows them, "account delete" ends one, "account export"
// writes the plants of one, "account import" creates plants in one. They work on the store itself,
// beside a server or without one.
import { createReadStream, fstatSync, statSync } from 'node:fs'
import { type KeptPlant, samePlant } from '../domain/plant.ts'
import type { Store } from '../domain/store.ts'
import { tokenState } from '../domain/token.ts'
import { printable } from '../log.ts'
import { Refused } from '../refused.ts'
import { describeStore, type StoreLocation } from '../stores/location.ts'
import { idMin } from '../stores/plants.ts'
import { pages } from '../stores/summary.ts'
import { commandToPaste } from './help.ts'
import { csvHeader, plantsText, readPlants } from './plantFormats.ts'
import { showPhases } from './progress.ts'
import { type Parsed, UsageProblems } from './settings.ts'
import { counted, saying, withStore } from './stores.ts'
import { tableText, timeText, useText } from './tables.ts'
import { untilStopped, type World } from './world.ts'

export async function accountList(
  { values }: Parsed<'json' | 'store'>,
  world: World,
): Promise<number> {
  return withStore(values.store, 'of a command', world, async ({ tokens, kept }) => {
    const nowMs = world.clock.wallMs()
    const tokensOf = Map.groupBy(await tokens.list(), ({ account }) => account)
    const accounts = []
    for (const [account, own] of [...tokensOf].sort(([one], [other]) => (one < other ? -1 : 1))) {
      const lastUsedAtMs = Math.max(...own.map((token) => token.lastUsedAtMs ?? 0)) || null
      accounts.push({
        account,
        plants: await kept.countPlants(account),
        activeTokens: own.filter((token) => tokenState(token, nowMs) === 'active').length,
        tokens: own.length,
        lastUsedAtMs,
      })
    }
    if (values.json) {
      const published = accounts.map(({ lastUsedAtMs, ...account }) => ({
        ...account,
        lastUsedAt: timeText(lastUsedAtMs),
      }))
      world.print(JSON.stringify(published, undefined, 2))
    } else if (accounts.length > 0) {
      const rows = accounts.map(({ account, plants, activeTokens, tokens, lastUsedAtMs }) => [
        printable(account),
        String(plants),
        `${activeTokens} of ${tokens}`,
        useText(lastUsedAtMs),
      ])
      world.print(tableText([['ACCOUNT', 'PLANTS', 'ACTIVE TOKENS', 'LAST USED'], ...rows]))
    } else
      world.print(
        `There are no accounts. A token makes one: ${commandToPaste(world, ['token', 'issue', '--account', 'NAME'], values.store)}`,
      )
    return 0
  })
}

/** The tokens stay in the store, revoked. */
export async function accountDelete(
  { values: { account, yes, store } }: Parsed<'account' | 'yes' | 'store', 'account'>,
  world: World,
): Promise<number> {
  if (!yes && !world.inputIsTerminal)
    throw new UsageProblems(['--yes is missing, and there is no terminal on which to ask.'])
  return withStore(store, 'of a command', world, async (opened) => {
    await requireAccount(opened, account, store, world)
    const { tokens, plants, kept } = opened
    const total = await kept.countPlants(account)
    if (!yes) {
      const typed = await world.ask(
        `This revokes all tokens of the account ${printable(account)} in ${describeStore(store)} and deletes its ${counted(total, 'plant')}. Type its name to go on: `,
      )
      if (typed !== account) throw new Refused('That is not its name; nothing was changed.')
    }
    const signal = untilStopped(world)
    const shown = showPhases(world)
    let deleted = 0
    try {
      for (const { id } of await tokens.list(account)) await tokens.revoke(id, world.clock.wallMs())
      // Until then a server may go on to let clients create plants.
      await world.clock.sleep(tokens.delayMs)
      for await (const page of pages(kept, account)) {
        signal.throwIfAborted()
        const outcomes = await Promise.all(page.map(({ id }) => plants.delete(account, id)))
        deleted += outcomes.filter((wasThere) => wasThere).length
        shown.add('plants', page.length, total)
      }
      const left = await kept.countPlants(account)
      if (left > 0)
        throw new Refused(
          `${counted(left, 'plant')} of the account ${printable(account)} were created meanwhile, by a command; run this one again.`,
        )
    } catch (error) {
      throw saying('The account is deleted in part; run the same command again to go on.', error)
    } finally {
      shown.end()
    }
    world.print(
      `The account ${printable(account)} of ${describeStore(store)} has no plants any more (${deleted} deleted), and its tokens are revoked.`,
    )
    return 0
  })
}

export async function accountExport(
  {
    values: { account, format = 'ndjson', store },
  }: Parsed<'account' | 'format' | 'store', 'account'>,
  world: World,
): Promise<number> {
  return withStore(store, 'of a command', world, async (opened) => {
    await requireAccount(opened, account, store, world)
    const write = (text: string): Promise<void> =>
      world.write(text).catch((error) => {
        throw new Refused(`${error.message} What was written is not whole.`)
      })
    const total = await opened.kept.countPlants(account)
    const shown = showPhases(world)
    let written = 0
    if (format === 'csv') await write(csvHeader)
    for await (const plants of pages(opened.kept, account)) {
      await write(plantsText(plants, format))
      written += plants.length
      // A bar would stand between the plants.
      if (!world.outputIsTerminal) shown.add('plants', plants.length, total)
    }
    shown.end()
    world.tell(`${counted(written, 'plant')} of the account ${printable(account)} written.`)
    return 0
  })
}

export async function accountImport(
  {
    values: { account, format, 'dry-run': isDry, store },
    positionals: [name = ''],
  }: Parsed<'account' | 'format' | 'dry-run' | 'store', 'account'>,
  world: World,
): Promise<number> {
  const file = openFile(name, world)
  const chosen = format ?? (/\.csv$/i.test(name) ? 'csv' : 'ndjson')
  return withStore(store, 'of a command', world, async (opened) => {
    await requireAccount(opened, account, store, world)
    const signal = untilStopped(world)
    const shown = showPhases(world)
    const counts = { created: 0, there: 0, taken: 0, bad: 0 }
    try {
      for await (const part of readPlants(file.chunks(signal), chosen)) {
        signal.throwIfAborted()
        shown.add('bytes', part.bytes, file.bytes)
        const problems = await Promise.all(
          part.plants.map(async (read) => {
            if ('problem' in read) {
              counts.bad += 1
              return read.problem
            }
            const inTheWay = isDry
              ? await find(opened, account, read.plant.id)
              : await opened.plants.create(account, { ...read.plant, idempotencyKey: null })
            if (inTheWay === undefined) counts.created += 1
            else if (samePlant(inTheWay, read.plant)) counts.there += 1
            else {
              counts.taken += 1
              return `id ${read.plant.id} is already taken by another plant, which was not changed.`
            }
            return undefined
          }),
        )
        part.plants.forEach(({ line }, index) => {
          const problem = problems[index]
          if (problem !== undefined) shown.tell(`line ${line}: ${printable(problem)}`)
        })
      }
    } catch (error) {
      if (isDry) throw error
      throw saying('What was imported is kept; run the same command again to go on.', error)
    } finally {
      shown.end()
    }
    const { created, there, taken, bad } = counts
    world.print(
      `${counted(created, 'plant')} ${isDry ? 'to create' : 'created'} in the account ${printable(account)} of ${describeStore(store)}, ${there} there already, ${taken} with an id that is taken, ${counted(bad, 'bad line')}.${isDry ? ' Nothing was changed.' : ''}`,
    )
    return taken + bad === 0 ? 0 : 1
  })
}

/** Every account of a service has a token, so that `copy` and `verify` find its plants. */
async function requireAccount(
  { tokens }: Store,
  account: string,
  location: StoreLocation,
  world: World,
): Promise<void> {
  if ((await tokens.list(account)).length > 0) return
  throw new Refused(
    `${describeStore(location)} has no account ${JSON.stringify(account)}: a token makes it one. All are shown by: ${commandToPaste(world, ['account', 'list'], location)}`,
  )
}

async function find(store: Store, account: string, id: bigint): Promise<KeptPlant | undefined> {
  const after = id === idMin ? undefined : id - 1n
  const { plants } = await store.kept.plants(account, { after, upTo: id, limit: 1 })
  return plants[0]
}

/** Plants that are read at once are written at once: some thousand, or one that is longer. */
const chunkBytes = 256 * 1024

interface InputFile {
  /** Undefined if nobody knows. */
  readonly bytes: number | undefined
  /** Ends with the reason of the signal, also while it waits for more. */
  readonly chunks: (signal: AbortSignal) => AsyncIterable<Buffer>
}

function openFile(name: string, { inputDescriptor }: World): InputFile {
  const refuse = (error: unknown): never => {
    const { code = '', message } = error as Error & { code?: string }
    const reasons: Readonly<Record<string, string>> = {
      EACCES: 'permission is denied',
      EISDIR: 'it is a folder',
      ENOENT: 'there is no such file',
    }
    throw new Refused(
      `${name === '-' ? 'Standard input' : name} cannot be read: ${reasons[code] ?? message}.`,
    )
  }
  try {
    const found = name === '-' ? fstatSync(inputDescriptor) : statSync(name)
    return { bytes: found.isFile() ? found.size : undefined, chunks }
  } catch (error) {
    return refuse(error)
  }

  async function* chunks(signal: AbortSignal): AsyncGenerator<Buffer> {
    const source = name === '-' ? { fd: inputDescriptor } : {}
    const stream = createReadStream(name, { ...source, highWaterMark: chunkBytes })
    const parts = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    // The runtime does not call off a read that waits.
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    aborted.catch(() => {})
    for (;;) {
      const part = await Promise.race([parts.next().catch(refuse), aborted])
      if (part.done === true) return
      yield part.value
    }
  }
}
