// Group commit: the writes that arrive while one batch is being committed form the next batch.
//
// A write is acknowledged when it is durable, and that costs a sync of the disk, or a round trip to
// a database that waits for its standbys. The cost is the same for one write and for a thousand. So
// one batch at a time is under way, and what comes meanwhile waits and then shares the next. No
// timer makes a lone write wait for company: if nothing is under way, it leaves at the end of this
// turn of the event loop, together with the requests that were read in the same turn.
//
// If many write at once, there is one trap. All writers whose writes were settled write again at
// once, but the next batch has left by then with the few that came meanwhile. From then on the
// writers are two halves, and each waits for the commit of the other. So after a commit that took
// long, the next batch waits for those who were just settled: a quarter of the commit's time, 5 ms
// at most, and only if what came meanwhile came early, as from writers that return at once. It
// leaves as soon as all of them are there.
//
// No account holds up another. A batch takes one write of each account, then a second of each, and
// so on until it holds 1000 writes or 4 MiB of text; then the accounts that were served stand
// behind the others. The writes that are not settled share a quota of 64 MiB of text, and no
// account takes more of it than it leaves free. What does not fit is refused at once, as not done.
//
// Each write gets an outcome of its own. If a commit fails, it fails for the whole batch, and the
// store says which it is: nothing was done, or nobody knows. A key keeps two writes of one thing
// out of one batch, for a store whose batch is one statement. Writes that have waited too long for
// those before them are refused before they are sent.
//
// SQLite has one group for the file, because the file has one write lock. Its commit goes to a
// thread of its own: sqlite/writer/channel.ts tells how. PostgreSQL has several (`CommitGroups`),
// because a slow commit there need not hold up everybody else: postgres/plants.ts tells which.
import type { Clock } from '../clock.ts'
import { Failure } from '../domain/failure.ts'
import { nothingDone } from './failures.ts'

/**
 * Writes a batch and answers what became of each write, in their order; rejects with a Failure
 * if none of them counts.
 */
export type Commit<Write, Outcome> = (batch: readonly Write[]) => Promise<readonly Outcome[]>

/**
 * Most writes, and most text (in UTF-16 code units), in one batch: what one commit may hold up
 * others for.
 */
const batchWritesMax = 1000
const batchTextMax = 4 * 1024 * 1024
/**
 * Most text of writes that are not settled; beyond that a write is refused rather than memory
 * filled.
 */
const waitingTextMax = 64 * 1024 * 1024

/** Longest wait for writers to return. */
const returnMaxMs = 5
/** Shorter commits are not waited for: to read and answer the requests of a batch takes as long. */
const longCommitMs = 2

/**
 * The text that the unsettled writes of a store may hold together. No account takes more of it than
 * it leaves free for others.
 */
export class WriteQuota {
  readonly #taken = new Map<string, number>()
  #free = waitingTextMax
  #writes = 0

  /** How many writes are not settled. */
  get writes(): number {
    return this.#writes
  }

  take(account: string, text: number): boolean {
    const taken = (this.#taken.get(account) ?? 0) + text
    if (taken > this.#free - text) return false
    this.#taken.set(account, taken)
    this.#free -= text
    this.#writes += 1
    return true
  }

  leave(account: string, text: number): void {
    const left = (this.#taken.get(account) ?? 0) - text
    if (left > 0) this.#taken.set(account, left)
    else this.#taken.delete(account)
    this.#free += text
    this.#writes -= 1
  }
}

export interface GroupCommitOptions<Write> {
  readonly clock: Clock
  readonly quota: WriteQuota
  /** How much text a write holds, in UTF-16 code units. */
  readonly lengthOf: (write: Write) => number
  /** What must not be twice in one batch, if there is such a thing. */
  readonly keyOf?: (write: Write) => unknown
  /** How long a write may wait for its batch; absent: for as long as it takes. */
  readonly waitMaxMs?: number
  /** Called when nothing is left to commit. */
  readonly onIdle?: () => void
}

interface Waiting<Write, Outcome> {
  readonly account: string
  readonly write: Write
  readonly submittedMs: number
  readonly resolve: (outcome: Outcome) => void
  readonly reject: (failure: unknown) => void
}

export class GroupCommit<Write, Outcome> {
  readonly #commit: Commit<Write, Outcome>
  readonly #options: GroupCommitOptions<Write>
  readonly #clock: Clock
  /**
   * By account, in the order in which they came. The account that was served longest ago comes
   * first.
   */
  #waiting = new Map<string, Waiting<Write, Outcome>[]>()
  #waitingCount = 0
  #lastSubmittedMs = 0
  #committing: Promise<void> | undefined
  #awaited: { readonly everybody: number; readonly resolve: () => void } | undefined

  constructor(commit: Commit<Write, Outcome>, options: GroupCommitOptions<Write>) {
    this.#commit = commit
    this.#options = options
    this.#clock = options.clock
  }

  /**
   * Settles once the write is durable, or with a Failure: `store-unavailable` or `outcome-unknown`.
   */
  submit(account: string, write: Write): Promise<Outcome> {
    if (!this.#options.quota.take(account, this.#options.lengthOf(write))) {
      if (this.#committing === undefined) this.#options.onIdle?.()
      return Promise.reject(
        new Failure(
          'store-unavailable',
          'The store has too many writes waiting; nothing was done, try again.',
        ),
      )
    }
    const submittedMs = this.#clock.monotonicMs()
    return new Promise((resolve, reject) => {
      const waiting = { account, write, submittedMs, resolve, reject }
      const queue = this.#waiting.get(account)
      if (queue === undefined) this.#waiting.set(account, [waiting])
      else queue.push(waiting)
      this.#waitingCount += 1
      this.#lastSubmittedMs = submittedMs
      if (this.#waitingCount === this.#awaited?.everybody) this.#awaited.resolve()
      this.#committing ??= this.#commitAll()
    })
  }

  /** Resolves when everything that was submitted is settled. */
  async finish(): Promise<void> {
    await this.#committing
  }

  async #commitAll(): Promise<void> {
    // The requests that were read together with this one join its batch.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waitingCount > 0) {
      this.#refuseOverdue()
      const startMs = this.#clock.monotonicMs()
      const batch = this.#takeBatch()
      if (batch.length === 0) continue
      let settled = 0
      try {
        const outcomes = await this.#commit(batch.map(({ write }) => write))
        batch.forEach(({ resolve }, index) => {
          resolve(outcomes[index] as Outcome)
        })
        settled = batch.length
      } catch (failure) {
        for (const { reject } of batch) reject(failure)
      }
      this.#leaveRoom(batch)
      await this.#awaitReturn(settled, startMs)
    }
    this.#committing = undefined
    this.#options.onIdle?.()
  }

  /**
   * Those whose writes are settled often write again at once. If the next batch leaves without
   * them, all writers fall into two halves for good, each of which waits for the commit of the
   * other. So after a long commit they are waited for, a quarter of its time at most, unless what
   * came meanwhile shows that writers do not come at once.
   */
  async #awaitReturn(settled: number, startMs: number): Promise<void> {
    const tookMs = this.#clock.monotonicMs() - startMs
    const waitMaxMs = Math.min(tookMs / 4, returnMaxMs)
    const lastCameMs = this.#waitingCount === 0 ? 0 : this.#lastSubmittedMs - startMs
    const everybody = Math.min(settled + this.#waitingCount, batchWritesMax)
    if (everybody === 1 || tookMs < longCommitMs || lastCameMs > waitMaxMs) return
    if (this.#waitingCount >= everybody) return
    await new Promise<void>((resolve) => {
      const callOff = this.#clock.after(waitMaxMs, resolve)
      this.#awaited = { everybody, resolve: () => resolve(callOff()) }
    })
    this.#awaited = undefined
  }

  /** Refuses the writes that have waited too long for those before them. */
  #refuseOverdue(): void {
    const { waitMaxMs } = this.#options
    if (waitMaxMs === undefined) return
    const earliestMs = this.#clock.monotonicMs() - waitMaxMs
    for (const queue of [...this.#waiting.values()]) {
      const end = queue.findIndex(({ submittedMs }) => submittedMs >= earliestMs)
      if (end === 0) continue
      const overdue = new Set(end === -1 ? queue : queue.slice(0, end))
      this.#leaveQueue(queue, overdue)
      this.#leaveRoom([...overdue])
      for (const { reject } of overdue)
        reject(nothingDone(new Error('it waited too long for the writes before it')))
    }
  }

  #leaveRoom(writes: readonly Waiting<Write, Outcome>[]): void {
    const { quota, lengthOf } = this.#options
    for (const { account, write } of writes) quota.leave(account, lengthOf(write))
  }

  /** One write of each account, then a second of each, and so on until the batch is full. */
  #takeBatch(): readonly Waiting<Write, Outcome>[] {
    const { lengthOf, keyOf } = this.#options
    const batch = new Set<Waiting<Write, Outcome>>()
    const keys = new Set<unknown>()
    let text = 0
    for (const waiting of this.#inTurn()) {
      if (batch.size === batchWritesMax || text >= batchTextMax) break
      const key = keyOf?.(waiting.write)
      if (key !== undefined && keys.has(key)) continue
      keys.add(key)
      text += lengthOf(waiting.write)
      batch.add(waiting)
    }
    const served = new Set([...batch].map(({ account }) => account))
    for (const account of served) this.#leaveQueue(this.#waiting.get(account) ?? [], batch)
    return [...batch]
  }

  *#inTurn(): Generator<Waiting<Write, Outcome>> {
    for (let round = 0, found = true; found; round += 1) {
      found = false
      for (const queue of this.#waiting.values()) {
        const waiting = queue[round]
        if (waiting === undefined) continue
        found = true
        yield waiting
      }
    }
  }

  /**
   * Takes writes out of the queue of their account, which then stands behind the queues of the
   * others.
   */
  #leaveQueue(
    queue: readonly Waiting<Write, Outcome>[],
    gone: ReadonlySet<Waiting<Write, Outcome>>,
  ): void {
    const account = queue[0]?.account ?? ''
    const left = queue.filter((waiting) => !gone.has(waiting))
    this.#waitingCount -= queue.length - left.length
    this.#waiting.delete(account)
    if (left.length > 0) this.#waiting.set(account, left)
  }
}

/**
 * Groups with names. The writes of one group share batches, of which one at a time is under way, and
 * do not wait for other groups.
 */
export class CommitGroups<Write, Outcome> {
  readonly #commit: (group: string, batch: readonly Write[]) => Promise<readonly Outcome[]>
  readonly #options: Omit<GroupCommitOptions<Write>, 'onIdle'>
  readonly #groups = new Map<string, GroupCommit<Write, Outcome>>()

  constructor(
    commit: (group: string, batch: readonly Write[]) => Promise<readonly Outcome[]>,
    options: Omit<GroupCommitOptions<Write>, 'onIdle'>,
  ) {
    this.#commit = commit
    this.#options = options
  }

  /** As `submit` of `GroupCommit`, in the group of this name. */
  submit(name: string, account: string, write: Write): Promise<Outcome> {
    let group = this.#groups.get(name)
    if (group === undefined) {
      const onIdle = (): void => void this.#groups.delete(name)
      const commit: Commit<Write, Outcome> = (batch) => this.#commit(name, batch)
      group = new GroupCommit(commit, { ...this.#options, onIdle })
      this.#groups.set(name, group)
    }
    return group.submit(account, write)
  }

  /** Resolves when everything that was submitted is settled. */
  async finish(): Promise<void> {
    await Promise.all([...this.#groups.values()].map((group) => group.finish()))
  }
}
