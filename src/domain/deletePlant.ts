// Deleting a plant. Never there, deleted before, another account's: all one to the caller.
import { Failure } from './failure.ts'
import type { Store } from './store.ts'

export async function deletePlant(store: Store, account: string, id: bigint): Promise<void> {
  if (!(await store.deletePlant(account, id))) throw new Failure('plant-missing')
}
