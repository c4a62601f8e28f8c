// What crosses between the HTTP thread and the writer's: batches of writes, and what became of
// them.
import type { KeptPlant } from '../../../domain/plant.ts'
import type { Token, TokenHash } from '../../../domain/token.ts'
import type { Place } from '../file.ts'

/** What a writer is started with. */
export interface WriterData {
  readonly path: string
  /**
   * What the files were when the store was opened: a writer that comes later must not write to
   * others.
   */
  readonly place: Place
}

export type Write =
  | { readonly kind: 'createPlant'; readonly account: string; readonly plant: KeptPlant }
  | { readonly kind: 'deletePlant'; readonly account: string; readonly id: bigint }
  | {
      readonly kind: 'issueToken' | 'issueFirstToken'
      readonly token: Token
      readonly hash: TokenHash
    }
  | { readonly kind: 'revokeToken'; readonly id: string; readonly nowMs: number }
  | { readonly kind: 'noteTokenUse'; readonly id: string; readonly usedAtMs: number }
  | { readonly kind: 'probe' | 'tryCommit' }

/** What became of a write: how many rows it changed. */
export type Outcome = number

/** Resolves once a write is durable; rejects with a Failure. */
export type SendWrite = (write: Write) => Promise<Outcome>

/**
 * What became of a batch: the outcome of each write, or why none counts. `undone`: surely nothing
 * was written.
 */
export type BatchOutcome =
  | { readonly outcomes: readonly Outcome[] }
  | { readonly failed: string; readonly undone: boolean }

/**
 * A batch as it crosses: JSON text, which costs the two threads less than the structured clone of
 * as many objects. Creates and deletes, the most frequent writes, cross as arrays without names.
 * 64-bit integers cross in decimal, bytes in hexadecimal.
 */
export function encode(batch: readonly Write[]): string {
  return JSON.stringify(
    batch.map((write) => {
      switch (write.kind) {
        case 'createPlant': {
          const { id, name, tag, idempotencyKey } = write.plant
          return [write.account, String(id), name, tag, idempotencyKey]
        }
        case 'deletePlant':
          return [write.account, String(write.id)]
        case 'issueToken':
        case 'issueFirstToken':
          return { ...write, hash: Buffer.from(write.hash).toString('hex') }
        default:
          return write
      }
    }),
  )
}

type Encoded =
  | readonly [account: string, id: string]
  | readonly [
      account: string,
      id: string,
      name: string,
      tag: string | null,
      idempotencyKey: string | null,
    ]
  | (Omit<Extract<Write, { hash: TokenHash }>, 'hash'> & { readonly hash: string })
  | Exclude<Write, { account: string } | { hash: TokenHash }>

/** The batch that a text stands for: the other half of `encode`, for the writer's thread. */
export function decode(text: string): readonly Write[] {
  return (JSON.parse(text) as readonly Encoded[]).map((encoded): Write => {
    if ('kind' in encoded)
      return 'hash' in encoded
        ? { ...encoded, hash: Buffer.from(encoded.hash, 'hex') as unknown as TokenHash }
        : encoded
    const account = encoded[0]
    const id = BigInt(encoded[1])
    if (encoded.length === 2) return { kind: 'deletePlant', account, id }
    const plant = { id, name: encoded[2], tag: encoded[3], idempotencyKey: encoded[4] }
    return { kind: 'createPlant', account, plant }
  })
}
