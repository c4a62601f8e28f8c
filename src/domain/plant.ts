// What a plant is, to its readers and in a store. src/contract says how it travels.

/** A plant as its readers see it. `tag` is null if the plant has none. */
export interface Plant {
  readonly name: string
  readonly tag: string | null
}

/**
 * Every text of a plant, for what treats them alike. The compiler sees to it that none is left out.
 */
export const plantTexts = Object.keys({
  name: true,
  tag: true,
} satisfies Record<keyof Plant, true>) as readonly (keyof Plant)[]

/** The greatest id: ids are signed 64-bit integers. */
export const idMax = 2n ** 63n - 1n

/** A plant with its identifier, which is unique within its account. */
export interface IdentifiedPlant extends Plant {
  readonly id: bigint
}

/** A plant as it is kept: with the idempotency key that its create carried, or null. */
export interface KeptPlant extends IdentifiedPlant {
  readonly idempotencyKey: string | null
}

/** Whether two plants are the same to their readers. */
export function samePlant(one: Plant, other: Plant): boolean {
  return plantTexts.every((member) => one[member] === other[member])
}

/** How much text a plant holds, in UTF-16 code units. */
export function textLength({ name, tag }: Plant): number {
  return name.length + (tag?.length ?? 0)
}
