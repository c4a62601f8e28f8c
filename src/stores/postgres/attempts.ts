// Sends a statement until it is done or too late, and says then what became of it.
import type { Clock } from '../../clock.ts'
import { nothingDone, writeUncertain } from '../failures.ts'
import { Fault, faultOf, lostSince } from './cluster/faults.ts'
import type { Row } from './cluster/node.ts'
import type { Nodes } from './cluster/nodes.ts'
import type { Engine } from './schema.ts'
import { type Statement, statements } from './statements.ts'

/** The pause before the second attempt is up to this long; it doubles with each further one. */
const pauseFirstMs = 10
const pauseMaxMs = 500

const notConfirmed =
  'The store did not confirm a write in time; a synchronous standby of the database may be missing.'

export class Attempts {
  readonly #nodes: Pick<Nodes, 'send' | 'isClosed'>
  readonly #engine: Engine
  readonly #operationMs: number
  readonly #randomBytes: (count: number) => Uint8Array
  readonly #clock: Clock

  constructor(
    nodes: Pick<Nodes, 'send' | 'isClosed'>,
    engine: Engine,
    operationMs: number,
    randomBytes: (count: number) => Uint8Array,
    clock: Clock,
  ) {
    this.#nodes = nodes
    this.#engine = engine
    this.#operationMs = operationMs
    this.#randomBytes = randomBytes
    this.#clock = clock
  }

  /** Rejects with `store-unavailable`. */
  read(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#attempt(() => this.#nodes.send(statement, values, false), false)
  }

  /**
   * The statement must bear being done twice. Rejects with `store-unavailable`, or
   * `outcome-unknown` if it may have been done.
   */
  write(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#attempt(() => this.#nodes.send(statement, values, true), true)
  }

  /**
   * As `write`, for a batch that must not be done twice. `key` names the batch and goes before the
   * values. Resolves to the row of the batch.
   */
  writeOnce(
    statement: Statement,
    key: readonly unknown[],
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    const send = async (): Promise<readonly Row[]> => {
      try {
        return await this.#nodes.send(statement, [...key, ...values], true)
      } catch (error) {
        if (faultOf(error).done !== 'before') throw error
        const rows = await this.#nodes.send(statements.findBatch, key, true)
        if (rows.length === 0) throw new Fault('a failover has lost the batch', lostSince, error)
        return rows
      }
    }
    return this.#attempt(send, true)
  }

  /** As `write`, but tried once only. Rejects with `store-unavailable`. */
  async tryOnce(statement: Statement, values: readonly unknown[]): Promise<void> {
    try {
      await this.#nodes.send(statement, values, true)
    } catch (error) {
      const { connection } = faultOf(error)
      const isReached = connection !== 'none' && connection !== 'lost'
      throw nothingDone(error, isReached ? notConfirmed : undefined)
    }
  }

  async #attempt(send: () => Promise<readonly Row[]>, writes: boolean): Promise<readonly Row[]> {
    const endMs = this.#clock.monotonicMs() + this.#operationMs
    let uncertain = false
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await send()
      } catch (error) {
        const { done, retry } = faultOf(error, this.#engine.relaysStatements)
        uncertain ||= done === 'unknown'
        // A random part of a bound that doubles, so that operations that failed together do not
        // come back together.
        const [random = 0] = this.#randomBytes(1)
        const pauseMs = (Math.min(pauseFirstMs * 2 ** attempt, pauseMaxMs) * (random + 1)) / 256
        // What fails for good settles nothing if an earlier attempt may have been done.
        const isOver = this.#nodes.isClosed || this.#clock.monotonicMs() + pauseMs > endMs
        if (isOver || (!retry && !uncertain))
          throw writes && uncertain ? writeUncertain(error) : nothingDone(error)
        await this.#clock.sleep(pauseMs)
      }
    }
  }
}
