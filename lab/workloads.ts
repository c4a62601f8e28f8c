// What the benchmark asks of a server. One declaration has three readers: wrk.ts, openLoop.ts and
// storage.ts.

/**
 * One request. In the place of `{id}` in its text goes a number that no other request of its kind
 * has.
 */
export interface Step {
  readonly kind: 'create' | 'delete' | 'list'
  readonly target: string
  readonly body?: string
  /** Its number is that of a plant of the stock, which is created before the load begins. */
  readonly ofStock?: true
}

export interface Workload {
  readonly name: string
  /** Done in turn, over and over. */
  readonly steps: readonly Step[]
  /** Whether it deletes what the creates just before it with the same base have made. */
  readonly deletes?: boolean
}

/** Ids of different runs are kept apart by their bases: more than a run can create. */
export const baseStride = 10_000_000
/**
 * All ids from one before this have the same number of digits, so that a body with one has one
 * length. Seeded plants come before them.
 */
export const firstBase = 1_000_000_001
export const basesMax = 900

/** Plants that are there from the start, so that there is something to list. */
export const seededPlants = 1000
export const seededPlant = { name: 'Monstera deliciosa', tag: 'indoor' }

const create: Step = {
  kind: 'create',
  target: '/plants',
  body: JSON.stringify({ id: 0, ...seededPlant }).replace('0', '{id}'),
}
const remove: Step = { kind: 'delete', target: '/plants/{id}' }
export const listOf = (limit: number): Step => ({ kind: 'list', target: `/plants?limit=${limit}` })

/** Where the numbers of the stock begin, above the base. */
export const stockOffset = baseStride / 2

export const creates: Workload = { name: 'creates', steps: [create] }
export const deletes: Workload = { name: 'deletes', steps: [remove], deletes: true }
export const listsOf20: Workload = { name: 'lists of 20', steps: [listOf(20)] }
/** Lists of 20 on average, of which the requests of one moment are all different. */
export const variedLists: Workload = {
  name: 'lists of 1 to 39',
  steps: Array.from({ length: 39 }, (_, index) => listOf(index + 1)),
}
export const listsOf1000: Workload = { name: 'lists of 1,000', steps: [listOf(1000)] }
/**
 * 70 % lists of 20, 20 % creates, 10 % deletes of other plants, so that no delete overtakes its
 * create.
 */
export const mix: Workload = {
  name: 'mix',
  steps: [
    ...Array.from({ length: 7 }, () => listOf(20)),
    create,
    create,
    { ...remove, ofStock: true },
  ],
}

/** A request as it is sent, cut where the id goes; a request without one has a single part. */
export function requestParts(
  { kind, target, body }: Step,
  host: string,
  token: string,
): readonly string[] {
  const method = { create: 'POST', delete: 'DELETE', list: 'GET' }[kind]
  const length = body?.replace('{id}', String(firstBase)).length
  const head = [
    `${method} ${target} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    ...(length === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${length}`]),
  ]
  return `${head.join('\r\n')}\r\n\r\n${body ?? ''}`.split('{id}')
}

/**
 * Which step is the n-th of a workload, counting from 0, and the number that its id has above the
 * base.
 */
export function stepAt(
  { steps }: Workload,
  n: number,
): { readonly step: Step; readonly number: number } {
  const step = steps[n % steps.length] as Step
  return { step, number: step.ofStock === true ? stockOffset + Math.floor(n / steps.length) : n }
}
