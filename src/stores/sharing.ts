// A store whose readers share. Under load one turn of the event loop brings in dozens of requests,
// often with the same token and for the same list. The store is then asked once for all of them.
//
// A question is put to the store only at the end of the turn, and in that same step it stops taking
// sharers. So each request that shares an answer was sent before the store was asked, and the
// answer is as fresh as one of its own (decision 8). Nothing is kept beyond that.
import type { Awaitable, Store } from '../domain/store.ts'

/** `atEndOfTurn` calls back once all sockets of this turn of the event loop have been read. */
export function sharingReads(store: Store, atEndOfTurn: (ask: () => void) => void): Store {
  const { plants, tokens } = store
  /**
   * The notes of a token's use that are under way: all requests of an hour's beginning ask for one.
   */
  const notes = new Map<string, Promise<void>>()
  let questions = new Map<string, { readonly answer: Promise<unknown>; readonly ask: () => void }>()

  /** The answer to a question, asked once in this turn. Equal keys must mean equal questions. */
  function share<Value>(key: string, ask: () => Awaitable<Value>): Promise<Value> {
    const known = questions.get(key)
    if (known !== undefined) return known.answer as Promise<Value>
    if (questions.size === 0)
      atEndOfTurn(() => {
        const asked = questions
        questions = new Map()
        for (const { ask } of asked.values()) ask()
      })
    const { promise, resolve } = Promise.withResolvers<Value>()
    questions.set(key, { answer: promise, ask: () => resolve(Promise.try(ask)) })
    return promise
  }

  return {
    plants: {
      create: (account, plant) => plants.create(account, plant),
      delete: (account, id) => plants.delete(account, id),
      list: (account, range) => {
        const { after, upTo, limit, textMax } = range
        // Only walks through long lists name an end. Their pages are nobody else's at that moment.
        if (upTo !== undefined) return plants.list(account, range)
        const key = `list ${after} ${limit} ${textMax} ${account}`
        return share(key, () => plants.list(account, range))
      },
      nthId: (account, after, n) =>
        share(`nth ${after} ${n} ${account}`, () => plants.nthId(account, after, n)),
    },
    tokens: {
      delayMs: tokens.delayMs,
      issue: (token, hash) => tokens.issue(token, hash),
      issueFirst: (token, hash) => tokens.issueFirst(token, hash),
      find: (hash) => share(Buffer.from(hash).toString('latin1'), () => tokens.find(hash)),
      list: (account) => tokens.list(account),
      any: () => tokens.any(),
      revoke: (id, nowMs) => tokens.revoke(id, nowMs),
      noteUse: (id, usedAtMs) => {
        const key = `${id} ${usedAtMs}`
        const known = notes.get(key)
        if (known !== undefined) return known
        const note = tokens.noteUse(id, usedAtMs).finally(() => notes.delete(key))
        notes.set(key, note)
        return note
      },
    },
    kept: store.kept,
    ready: () => store.ready(),
    waitingWrites: () => store.waitingWrites(),
    bytes: () => store.bytes(),
    close: () => store.close(),
  }
}
