// Progress of long work: a bar on a terminal, a plain line now and then elsewhere.
import type { World } from './world.ts'

const barWidth = 24
const redrawMs = 100
const lineMs = 5000

export class Progress {
  readonly #world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'monotonicMs'>
  readonly #what: string
  readonly #total: number
  readonly #startedMs: number
  #shownMs: number
  #done = 0

  constructor(world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'monotonicMs'>, what: string, total: number) {
    this.#world = world
    this.#what = what
    this.#total = total
    this.#startedMs = world.monotonicMs()
    this.#shownMs = this.#startedMs
  }

  /** Counts further parts as done. */
  add(parts: number): void {
    this.#done += parts
    const nowMs = this.#world.monotonicMs()
    if (nowMs - this.#shownMs < (this.#world.errorIsTerminal ? redrawMs : lineMs)) return
    this.#shownMs = nowMs
    this.#show()
  }

  /** Leaves a last line behind. */
  end(): void {
    this.#show()
    if (this.#world.errorIsTerminal) this.#world.draw('\n')
  }

  #show(): void {
    const seconds = (this.#world.monotonicMs() - this.#startedMs) / 1000
    const share = this.#total === 0 ? 1 : Math.min(this.#done / this.#total, 1)
    const rate = seconds === 0 ? 0 : this.#done / seconds
    const left = rate === 0 || share === 1 ? '' : `, ${durationText((this.#total - this.#done) / rate)} left`
    const numbers = `${this.#done} of ${this.#total} plants (${Math.floor(share * 100)} %), ${Math.round(rate)}/s${left}`
    if (!this.#world.errorIsTerminal) this.#world.tell(`${this.#what}: ${numbers}`)
    else this.#world.draw(`\r${this.#what.padEnd(9)} ${bar(share)} ${numbers}\u001b[K`)
  }
}

function bar(share: number): string {
  const filled = Math.round(share * barWidth)
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`
}

function durationText(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
