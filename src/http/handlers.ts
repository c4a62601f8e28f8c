// The step "operate": one entry for each operation, from its typed input to its reply.
import { type InputOf, type OperationId, operations } from '../contract/operations.ts'
import {
  cursorText,
  pieceTextMax,
  plantJson,
  plantsJson,
  plantsJsonPieces,
} from '../contract/plants.ts'
import type { Caller } from '../domain/access.ts'
import { Failure } from '../domain/failure.ts'
import { type Plant, textLength } from '../domain/plant.ts'
import {
  createPlant,
  deletePlant,
  type LargeSnapshot,
  listPlants,
  pagePlants,
  type Snapshot,
  type Walk,
} from '../domain/plants.ts'
import { pageTextMax } from '../domain/store.ts'
import type { Context } from './context.ts'
import {
  bareHeaders,
  jsonHeaders,
  longAnswerBytes,
  type Pieces,
  type Reply,
  withHeaders,
} from './reply.ts'
import type { Route } from './request.ts'

type CallerOf<Id extends OperationId> = (typeof operations)[Id]['access'] extends 'public'
  ? undefined
  : Caller

export interface Handled<Id extends OperationId = OperationId> {
  readonly context: Context
  readonly route: Route
  readonly caller: CallerOf<Id>
  readonly input: InputOf<(typeof operations)[Id]>
  /** Whether the client has left meanwhile. */
  readonly isGone: () => boolean
}

type Handlers = { readonly [Id in OperationId]: (handled: Handled<Id>) => Reply | Promise<Reply> }

export const handlers: Handlers = {
  async createPlant({ context, caller, input }) {
    const plant = { ...input.body, idempotencyKey: input.idempotencyKey ?? null }
    return json(
      'createPlant',
      plantJson(await createPlant(context.store.plants, caller.account, plant)),
    )
  },

  async listPlants(handled) {
    const { context, caller, input } = handled
    const list = await listPlants(context.store.plants, caller.account, input, context.pace.turn)
    return 'read' in list
      ? await largeListReply(list, handled)
      : listReply(list, input.limit, context.publicUrl)
  },

  async deletePlant({ context, caller, input }) {
    await deletePlant(context.store.plants, caller.account, input.id)
    return { status: operations.deletePlant.success.status, headers: bareHeaders, body: null }
  },

  livez: () => json('livez', '{"status":"alive"}'),

  async readyz({ context }) {
    if (context.isStopping()) throw new Failure('store-unavailable', 'The service is stopping.')
    await context.store.ready()
    return json('readyz', '{"status":"ready"}')
  },

  home: ({ context }) => ({
    status: operations.home.success.status,
    headers: withHeaders(bareHeaders, {
      Location: `${context.publicUrl}${operations.docs.path}`,
    }),
    body: null,
  }),
  openapi: ({ context, input }) => context.pages.openapi(input),
  docs: ({ context, input }) => context.pages.docs(input),
  docsScript: ({ context, input }) => context.pages.docsScript(input),
  docsStart: ({ context, input }) => context.pages.docsStart(input),

  options: ({ route }) => ({
    status: operations.options.success.status,
    headers: withHeaders(bareHeaders, { Allow: route.allow }),
    body: null,
  }),
}

function json(id: OperationId, body: string): Reply {
  return { status: operations[id].success.status, headers: jsonHeaders, body }
}

function nextLink(next: bigint, limit: number | undefined, publicUrl: string): string {
  return `<${publicUrl}${operations.listPlants.path}?limit=${limit}&after=${cursorText(next)}>; rel="next"`
}

/**
 * Sets memory aside before it reads a snapshot: a little first, and more only if that is needed.
 */
async function largeListReply(
  list: LargeSnapshot,
  { context, caller, input, isGone }: Handled<'listPlants'>,
): Promise<Reply> {
  for (let textMax = largeTextMin; ; textMax = Math.min(4 * textMax, pageTextMax)) {
    const room = await context.longAnswers.room(
      caller.account,
      bytesPerUnit * textMax + bytesPerPlant * pagePlants,
      isGone,
    )
    try {
      const found = await list.read(textMax)
      if (found !== undefined && 'plants' in found) {
        room.shrink(memoryBytes(found.plants))
        return { ...listReply(found, input.limit, context.publicUrl), room }
      }
      room.release()
      if (found !== undefined) return listReply(found, input.limit, context.publicUrl)
    } catch (error) {
      room.release()
      throw error
    }
  }
}

/** The first size that is tried for a large list, in UTF-16 code units. */
const largeTextMin = 1024 * 1024

/**
 * Requests that share the plants they list (stores/sharing.ts) share the reply that is made of
 * them.
 */
const sharedReplies = new WeakMap<readonly Plant[], { limit: number | undefined; reply: Reply }>()

function listReply(list: Snapshot | Walk, limit: number | undefined, publicUrl: string): Reply {
  const shared = 'plants' in list ? sharedReplies.get(list.plants) : undefined
  if (shared !== undefined && shared.limit === limit) return shared.reply
  const headers =
    list.next === undefined
      ? jsonHeaders
      : withHeaders(jsonHeaders, { Link: nextLink(list.next, limit, publicUrl) })
  const reply = { status: operations.listPlants.success.status, headers, body: listBody(list) }
  if ('plants' in list) sharedReplies.set(list.plants, { limit, reply })
  return reply
}

/** A short list as one text, or a longer one in pieces, each made when its reader asks for it. */
function listBody(list: Snapshot | Walk): string | Pieces {
  if ('pages' in list) return listPieces(list.pages)
  if (totalTextLength(list.plants) <= longAnswerBytes) {
    const body = `[${plantsJson(list.plants)}]`
    if (Buffer.byteLength(body) <= longAnswerBytes) return body
  }
  return listPieces([list.plants])
}

function listPieces(
  pages: AsyncIterable<readonly Plant[]> | readonly (readonly Plant[])[],
): Pieces {
  return async function* (holds) {
    let before = '['
    for await (const plants of pages) {
      // A page may be empty if its plants were deleted meanwhile.
      if (plants.length === 0) continue
      const isOnePiece = totalTextLength(plants) <= pieceTextMax
      holds(isOnePiece ? 0 : memoryBytes(plants))
      for (const piece of isOnePiece ? [plantsJson(plants)] : plantsJsonPieces(plants)) {
        yield before + piece
        before = ''
      }
      before = ','
    }
    yield before === '[' ? '[]' : ']'
  }
}

/** What a UTF-16 code unit takes in memory at most. */
const bytesPerUnit = 2
/** About what a plant takes in memory beside its text. */
const bytesPerPlant = 200

function memoryBytes(plants: readonly Plant[]): number {
  return bytesPerPlant * plants.length + bytesPerUnit * totalTextLength(plants)
}

function totalTextLength(plants: readonly Plant[]): number {
  let length = 0
  for (const plant of plants) length += textLength(plant)
  return length
}
