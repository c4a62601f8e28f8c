// Work that the requests of one turn of the event loop share. One poll of the sockets brings in
// many requests. All of them were sent before anything is read on their behalf, so one reading of
// the store is as fresh for each of them as a reading of its own would be.

export class Turn {
  readonly #answers = new Map<string, Promise<unknown>>()

  /** The answer to a question, asked once in a turn. Equal keys must mean equal questions. */
  share<Value>(key: string, ask: () => Promise<Value>): Promise<Value> {
    const known = this.#answers.get(key)
    if (known !== undefined) return known as Promise<Value>
    // Immediates run before the sockets are polled again.
    if (this.#answers.size === 0) setImmediate(() => this.#answers.clear())
    const answer = ask()
    this.#answers.set(key, answer)
    return answer
  }
}
