// What keeps a store from being opened, for the operator.

/** A store that cannot be opened: `message` is one sentence that names the store and the reason. */
export class StoreRefused extends Error {
  constructor(store: string, reason: string, cause?: unknown) {
    super(`The store ${store} cannot be used: ${reason}.`, { cause })
    this.name = 'StoreRefused'
  }
}
