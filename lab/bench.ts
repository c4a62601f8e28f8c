// What every part of the benchmark works with.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchServer, Contender, Environment } from './servers.ts'
import { baseStride, basesMax, creates, firstBase, listsOf20, seededPlants } from './workloads.ts'
import { load } from './wrk.ts'

export class Bench {
  /** Removed at the end. */
  readonly folder: string
  /** Says what is being done, on a terminal. */
  readonly tell: (text: string) => void
  #bases = 0
  #stores = 0

  constructor(folder: string, tell: (text: string) => void) {
    this.folder = folder
    this.tell = tell
  }

  /** Where the ids of a run begin, so that no two runs create the same plant. */
  newBase(): number {
    this.#bases += 1
    if (this.#bases > basesMax) throw new Error('there are no more ids with as many digits')
    return firstBase + (this.#bases - 1) * baseStride
  }

  /** A contender that does not do its job is not measured; the others go on. */
  failed(contender: string, error: unknown): void {
    console.error(`bench: ${contender}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }

  /** Each of the items once in each round; says on a terminal which it is. */
  *turns<Item extends { readonly contender: string }>(
    what: string,
    rounds: number,
    items: readonly Item[],
  ): Generator<Item & { readonly round: number }> {
    for (let round = 0; round < rounds; round += 1)
      for (const item of rotated(items, round)) {
        this.tell(`${what}, round ${round + 1} of ${rounds}: ${item.contender}`)
        yield { ...item, round }
      }
  }

  /** The path of a store that is not there yet. */
  newStore(): string {
    this.#stores += 1
    const folder = join(this.folder, String(this.#stores))
    mkdirSync(folder)
    return join(folder, 'plants.db')
  }

  /**
   * Does something with contenders that run, each on a store of its own that holds the first
   * plants.
   */
  async withServers<Result>(
    contenders: readonly Contender[],
    work: (servers: readonly NamedServer[]) => Promise<Result>,
    environment?: Environment,
  ): Promise<Result> {
    const servers: NamedServer[] = []
    const started: BenchServer[] = []
    try {
      for (const contender of contenders) {
        this.tell(`starting ${contender.name}`)
        const server = await contender.start(this.newStore(), environment)
        started.push(server)
        servers.push({ contender: contender.name, server, seedMs: await seed(server) })
        await this.#warmUp(server)
      }
      return await work(servers)
    } finally {
      await Promise.all(started.map((server) => server.stop()))
    }
  }

  /**
   * Code is compiled before anything counts; that of creates was when the first plants were made.
   */
  async #warmUp({ url, token }: BenchServer): Promise<void> {
    await load({
      url,
      tokens: [token],
      workload: listsOf20,
      base: this.newBase(),
      connections: 64,
      seconds: 1,
    })
  }
}

export interface NamedServer {
  readonly contender: string
  /** How long it took to create the first plants, one after another. */
  readonly seedMs: number
  readonly server: BenchServer
}

/** Creates the first plants one after another, and gives the milliseconds that it took. */
export async function seed({ url, token }: BenchServer): Promise<number> {
  const startMs = performance.now()
  const body = creates.steps[0]?.body ?? ''
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  for (let id = 1; id <= seededPlants; id += 1) {
    const { status } = await fetch(`${url}/plants`, {
      method: 'POST',
      headers,
      body: body.replace('{id}', String(id)),
    })
    if (status !== 200) throw new Error(`${url} answers a create with ${status}`)
  }
  return performance.now() - startMs
}

/**
 * Another goes first in each round, and in every second one the order is the other way round: none
 * always follows the same one.
 */
export function rotated<Item>(items: readonly Item[], round: number): readonly Item[] {
  return items.map((_, index) => {
    const place = round % 2 === 0 ? round + index : round - index
    return items.at(place % items.length) as Item
  })
}
