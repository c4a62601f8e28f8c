// What the benchmark asks of a server, as Lua for wrk: `n` counts the requests of a run from 1.

export interface Workload {
  readonly name: string
  /** A Lua function body that answers one request. `base` keeps the ids of different runs apart. */
  readonly request: (base: number) => string
  /** Whether it deletes what the creates just before it with the same base have made. */
  readonly deletes?: boolean
}

/** Plants that are there from the start, so that there is something to list. Their ids come before all others. */
export const seededPlants = 1000

/** How far the deletes of the mix stay behind its creates, so that each finds its plant. */
const behind = 4000

const create = (id: string): string =>
  `return wrk.format("POST", "/plants", json, '{"id":' .. string.format("%d", ${id}) .. ',"name":"Monstera deliciosa","tag":"indoor"}')`
const remove = (id: string): string => `return wrk.format("DELETE", "/plants/" .. string.format("%d", ${id}))`
const list = (limit: number): string => `return wrk.format("GET", "/plants?limit=${limit}")`

export const workloads: readonly Workload[] = [
  { name: 'creates', request: (base) => create(`${base} + n`) },
  { name: 'deletes', request: (base) => remove(`${base} + n`), deletes: true },
  { name: 'lists of 20', request: () => list(20) },
  { name: 'lists of 1,000', request: () => list(1000) },
  {
    name: 'mix',
    // 70 % lists, 20 % creates, 10 % deletes of what was created a while before.
    request: (base) => `
      local part = n % 10
      if part < 7 then ${list(20)} end
      if part == 9 and n > ${behind} then ${remove(`${base} + n - ${behind} - 1`)} end
      ${create(`${base} + n`)}`,
  },
]
