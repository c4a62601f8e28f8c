// Deleting a plant. Never there, deleted before, another account's: all one to the caller.
import { Failure } from './failure.ts'
import type { Plants } from './store.ts'

export async function deletePlant(plants: Plants, account: string, id: bigint): Promise<void> {
  if (!(await plants.delete(account, id))) throw new Failure('plant-missing')
}
