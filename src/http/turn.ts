// Shares what the requests of one turn of the event loop read. A question is put to the store only
// at the end of the turn, and in that same step it stops taking sharers. So each request that
// shares an answer was sent before the store was asked, and the answer is as fresh as one of its
// own.

interface Question {
  readonly ask: () => void
  readonly answer: Promise<unknown>
}

export class Turn {
  #questions = new Map<string, Question>()

  /**
   * The answer to a question, asked once at the end of this turn. Equal keys must mean equal
   * questions.
   */
  share<Value>(key: string, ask: () => Promise<Value>): Promise<Value> {
    const known = this.#questions.get(key)
    if (known !== undefined) return known.answer as Promise<Value>
    // Immediates run once all sockets of the turn have been read.
    if (this.#questions.size === 0) setImmediate(() => this.#askAll())
    const { promise, resolve } = Promise.withResolvers<Value>()
    this.#questions.set(key, { ask: () => resolve(ask()), answer: promise })
    return promise
  }

  #askAll(): void {
    const questions = this.#questions
    this.#questions = new Map()
    for (const { ask } of questions.values()) ask()
  }
}
