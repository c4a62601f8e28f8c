// The writes of one account share a statement; those of different accounts go their own ways, so
// that none waits for another. One batch of an account is under way at a time.
import {
  type Commit,
  GroupCommit,
  type GroupCommitOptions,
  type WaitingRoom,
} from '../groupCommit.ts'

export interface AccountBatchesOptions<Write>
  extends Pick<GroupCommitOptions<Write>, 'textOf' | 'keyOf' | 'waitMaxMs'> {
  readonly room: WaitingRoom
}

export class AccountBatches<Write, Outcome> {
  readonly #commitFor: (account: string) => Commit<Write, Outcome>
  readonly #options: AccountBatchesOptions<Write>
  readonly #accounts = new Map<string, GroupCommit<Write, Outcome>>()

  constructor(
    commit: (account: string, batch: readonly Write[]) => Promise<readonly Outcome[]>,
    options: AccountBatchesOptions<Write>,
  ) {
    this.#commitFor = (account) => (batch) => commit(account, batch)
    this.#options = options
  }

  submit(account: string, write: Write): Promise<Outcome> {
    return this.#ofAccount(account).submit(account, write)
  }

  /** Resolves when everything that was submitted is settled. */
  async finish(): Promise<void> {
    await Promise.all([...this.#accounts.values()].map((batches) => batches.finish()))
  }

  #ofAccount(account: string): GroupCommit<Write, Outcome> {
    const known = this.#accounts.get(account)
    if (known !== undefined) return known
    const onIdle = (): void => void this.#accounts.delete(account)
    const batches = new GroupCommit(this.#commitFor(account), { ...this.#options, onIdle })
    this.#accounts.set(account, batches)
    return batches
  }
}
