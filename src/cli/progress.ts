// Shows the progress of long work: a bar on a terminal, a plain line now and then elsewhere.
import type { World } from './world.ts'

const barWidth = 16
const redrawMs = 100
const lineMs = 5000

export class Progress {
  readonly #world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'clock'>
  readonly #what: string
  readonly #total: number | undefined
  readonly #startedMs: number
  #shownMs: number
  #done = 0

  constructor(
    world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'clock'>,
    what: string,
    total: number | undefined,
  ) {
    this.#world = world
    this.#what = what
    this.#total = total
    this.#startedMs = world.clock.monotonicMs()
    this.#shownMs = this.#startedMs
  }

  /** Counts further parts as done. */
  add(parts: number): void {
    this.#done += parts
    const nowMs = this.#world.clock.monotonicMs()
    if (nowMs - this.#shownMs < (this.#world.errorIsTerminal ? redrawMs : lineMs)) return
    this.#shownMs = nowMs
    this.#show()
  }

  /** Shows the last line, which stays. */
  end(): void {
    this.#show()
    if (this.#world.errorIsTerminal) this.#world.draw('\n')
  }

  #show(): void {
    const seconds = (this.#world.clock.monotonicMs() - this.#startedMs) / 1000
    const rate = seconds === 0 ? 0 : this.#done / seconds
    const total = this.#total
    const numbers = `${this.#done}${total === undefined ? '' : ` of ${total}`}, ${Math.round(rate)}/s${remaining(this.#done, total, rate)}`
    const share =
      total === undefined ? undefined : total === 0 ? 1 : Math.min(this.#done / total, 1)
    const percent = share === undefined ? '' : `${Math.floor(share * 100)} %`
    if (!this.#world.errorIsTerminal)
      this.#world.tell(`${this.#what}: ${percent === '' ? '' : `${percent}, `}${numbers}`)
    // Shorter than eighty columns even for billions of plants: a line that wraps cannot be redrawn.
    else
      this.#world.draw(
        `\r${this.#what.padEnd(9)} ${share === undefined ? '' : `${bar(share)} ${percent.padStart(5)}  `}${numbers}\u001b[K`,
      )
  }
}

function remaining(done: number, total: number | undefined, rate: number): string {
  return total === undefined || done >= total || rate === 0
    ? ''
    : `, ${durationText((total - done) / rate)} left`
}

function bar(share: number): string {
  const filled = Math.round(share * barWidth)
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`
}

function durationText(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
