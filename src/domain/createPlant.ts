// Creating a plant: never an overwrite, and a retry that carries its key is no conflict.
import { Failure } from './failure.ts'
import type { KeptPlant, Plant } from './plant.ts'
import type { Plants } from './store.ts'

export async function createPlant(
  plants: Plants,
  account: string,
  plant: KeptPlant,
): Promise<Plant> {
  const existing = await plants.create(account, plant)
  if (existing !== undefined) refuseUnlessRetried(plant, existing)
  return plant
}

function refuseUnlessRetried(plant: KeptPlant, existing: KeptPlant): void {
  if (plant.idempotencyKey === null || plant.idempotencyKey !== existing.idempotencyKey) {
    throw new Failure('id-taken')
  }
  if (plant.name !== existing.name || plant.tag !== existing.tag) {
    throw new Failure('idempotency-key-reused')
  }
}
