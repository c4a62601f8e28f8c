// Lets long work take turns: one turn of the event loop does only so much of it, and short requests
// go between.

/** Most text in one turn, in UTF-16 code units: a few milliseconds of work at most. */
const turnTextMax = 256 * 1024

interface Waiting {
  readonly text: number
  readonly resolve: () => void
}

export class Pace {
  #waiting: Waiting[] = []
  #doneText = 0
  #scheduled = false

  /**
   * Resolves when it is the turn of work on so much text. Work that alone exceeds a turn gets a
   * turn of its own.
   */
  readonly turn = (text: number): Promise<void> => {
    if (!this.#scheduled) this.#schedule()
    return new Promise((resolve) => {
      this.#waiting.push({ text, resolve })
      if (this.#waiting.length === 1) this.#admit()
    })
  }

  #schedule(): void {
    this.#scheduled = true
    setImmediate(() => {
      this.#doneText = 0
      this.#scheduled = false
      if (this.#waiting.length > 0) this.#schedule()
      this.#admit()
    })
  }

  #admit(): void {
    let admitted = 0
    for (const { text, resolve } of this.#waiting) {
      if (this.#doneText > 0 && this.#doneText + text > turnTextMax) break
      this.#doneText += text
      admitted += 1
      resolve()
    }
    this.#waiting.splice(0, admitted)
  }
}
