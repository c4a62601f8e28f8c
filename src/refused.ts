// What the operator is told if something cannot be done: a sentence, and no stack. Any other error
// that reaches the command line is a defect, and is shown with its stack.

/** `message` is one sentence: what is refused, why, and what to do about it. */
export class Refused extends Error {}

/** What a text must be instead, as the end of the sentence "--flag must be …". */
export class Mistake {
  readonly mustBe: string

  constructor(mustBe: string) {
    this.mustBe = mustBe
  }
}
