// Fourth step: each operation, from its typed input to its reply. One entry each, all of one form.
import { type InputOf, type OperationId, operations } from '../contract/operations.ts'
import { cursorText, plantJson, plantsJson } from '../contract/plants.ts'
import type { Caller } from '../domain/authenticate.ts'
import { createPlant } from '../domain/createPlant.ts'
import { deletePlant } from '../domain/deletePlant.ts'
import { Failure } from '../domain/failure.ts'
import { listPlants } from '../domain/listPlants.ts'
import type { Plant } from '../domain/plant.ts'
import type { Context } from './context.ts'
import type { Route } from './match.ts'
import type { Page } from './pages.ts'
import { bareHeaders, jsonHeaders, type Reply, withHeaders } from './reply.ts'

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

  listPlants({ context, caller, input }) {
    const { limit, after } = input
    return context.turn.share(`list ${limit} ${after} ${caller.account}`, async () => {
      const list = await listPlants(context.store, caller.account, input)
      const headers = list.next === undefined ? jsonHeaders : withHeaders(jsonHeaders, { Link: nextLink(list.next, limit) })
      const body = 'plants' in list ? `[${plantsJson(list.plants)}]` : streamed(list.pages)
      return { status: operations.listPlants.success.status, headers, body }
    })
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
  openapi: ({ context }) => page('openapi', context.pages.openapi),
  docs: ({ context }) => page('docs', context.pages.docs),
  docsScript: ({ context }) => page('docsScript', context.pages.docsScript),
  docsStart: ({ context }) => page('docsStart', context.pages.docsStart),

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

/** A list's text in parts; who shares it iterates for himself. */
function streamed(pages: AsyncIterable<readonly Plant[]>): AsyncIterable<string> {
  return {
    async *[Symbol.asyncIterator]() {
      let before = '['
      for await (const plants of pages) {
        yield before + plantsJson(plants)
        before = ','
      }
      yield before === '[' ? '[]' : ']'
    },
  }
}

async function page(id: OperationId, { headers, body }: Page): Promise<Reply> {
  return { status: operations[id].success.status, headers, body: await body() }
}
