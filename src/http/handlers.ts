// Fourth step: each operation, from its typed input to its reply. One entry each, all of one form.
import { type InputOf, type OperationId, operations } from '../contract/operations.ts'
import { cursorText, plantJson, plantsJson, plantsJsonPieces, textLength } from '../contract/plants.ts'
import type { Caller } from '../domain/authenticate.ts'
import { createPlant } from '../domain/createPlant.ts'
import { deletePlant } from '../domain/deletePlant.ts'
import { Failure } from '../domain/failure.ts'
import { listPlants, type Snapshot, type Walk } from '../domain/listPlants.ts'
import type { Plant } from '../domain/plant.ts'
import { pageTextMax } from '../domain/store.ts'
import type { Context } from './context.ts'
import type { Room } from './longAnswers.ts'
import type { Route } from './match.ts'
import { bareHeaders, jsonHeaders, longAnswerBytes, type Pieces, type Reply, withHeaders } from './reply.ts'

type CallerOf<Id extends OperationId> = (typeof operations)[Id]['access'] extends 'public' ? undefined : Caller

export interface Handled<Id extends OperationId = OperationId> {
  readonly context: Context
  readonly route: Route
  readonly caller: CallerOf<Id>
  readonly input: InputOf<(typeof operations)[Id]>
}

type Handlers = { readonly [Id in OperationId]: (handled: Handled<Id>) => Reply | Promise<Reply> }

export const handlers: Handlers = {
  async createPlant({ context, caller, input }) {
    const plant = { ...input.body, idempotencyKey: input.idempotencyKey ?? null }
    return json('createPlant', plantJson(await createPlant(context.store, caller.account, plant)))
  },

  async listPlants({ context, caller, input }) {
    const { store, turn, pace, longAnswers } = context
    const { limit, after } = input
    const listed = await turn.share(`list ${limit} ${after} ${caller.account}`, async () => {
      const list = await listPlants(store, caller.account, input, pace)
      return 'read' in list ? list : listReply(list, limit)
    })
    if (!('read' in listed)) return listed
    const room = await longAnswers.room(bytesPerUnit * pageTextMax)
    try {
      const list = await listed.read()
      room.shrink('plants' in list ? bytesPerUnit * textLengthOf(list.plants) : 0)
      return { ...listReply(list, limit, room), room }
    } catch (error) {
      room.release()
      throw error
    }
  },

  async deletePlant({ context, caller, input }) {
    await deletePlant(context.store, caller.account, input.id)
    return { status: operations.deletePlant.success.status, headers: bareHeaders, body: null }
  },

  livez: () => json('livez', '{"status":"alive"}'),

  async readyz({ context }) {
    if (context.isStopping()) throw new Failure('store-unavailable', 'The service is stopping.')
    await context.store.ready()
    return json('readyz', '{"status":"ready"}')
  },

  home: () => ({
    status: operations.home.success.status,
    headers: withHeaders(bareHeaders, { Location: operations.docs.path }),
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

function nextLink(next: bigint, limit: number | undefined): string {
  return `<${operations.listPlants.path}?limit=${limit}&after=${cursorText(next)}>; rel="next"`
}

function listReply(list: Snapshot | Walk, limit: number | undefined, room?: Room): Reply {
  const headers = list.next === undefined ? jsonHeaders : withHeaders(jsonHeaders, { Link: nextLink(list.next, limit) })
  return { status: operations.listPlants.success.status, headers, body: listBody(list, room) }
}

/** A short list as one text; a longer one in pieces, each made when its reader asks for it. */
function listBody(list: Snapshot | Walk, room: Room | undefined): string | Pieces {
  if ('pages' in list) return listPieces(list.pages, room)
  if (textLengthOf(list.plants) <= longAnswerBytes) {
    const text = `[${plantsJson(list.plants)}]`
    if (Buffer.byteLength(text) <= longAnswerBytes) return text
  }
  return listPieces([list.plants], room)
}

function listPieces(pages: AsyncIterable<readonly Plant[]> | readonly (readonly Plant[])[], room: Room | undefined): Pieces {
  return async function* (holds) {
    // From here on the answer itself says what it holds.
    room?.release()
    let before = '['
    for await (const plants of pages) {
      holds(bytesPerUnit * textLengthOf(plants))
      for (const piece of plantsJsonPieces(plants)) {
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

function textLengthOf(plants: readonly Plant[]): number {
  let length = 0
  for (const plant of plants) length += textLength(plant)
  return length
}
