// Progress of long work: a bar on a terminal, a plain line now and then elsewhere.
import type { World } from './world.ts'

const barWidth = 24
const redrawMs = 100
const lineMs = 5000

export class Progress {
  readonly #world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'monotonicMs'>
  readonly #what: string
  readonly #total: number | undefined
  readonly #startedMs: number
  #shownMs: number
  #done = 0

  constructor(world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'monotonicMs'>, what: string, total: number | undefined) {
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
    const rate = seconds === 0 ? 0 : this.#done / seconds
    const share = shareOf(this.#done, this.#total)
    const text = `${numbers(this.#done, this.#total, share)}, ${Math.round(rate)}/s${remaining(this.#done, this.#total, rate)}`
    if (!this.#world.errorIsTerminal) this.#world.tell(`${this.#what}: ${text}`)
    else this.#world.draw(`\r${this.#what.padEnd(9)} ${share === undefined ? '' : `${bar(share)} `}${text}\u001b[K`)
  }
}

/** From 0 to 1, or undefined where the total is not known. */
function shareOf(done: number, total: number | undefined): number | undefined {
  if (total === undefined) return undefined
  return total === 0 ? 1 : Math.min(done / total, 1)
}

function numbers(done: number, total: number | undefined, share: number | undefined): string {
  return share === undefined ? `${done}` : `${done} of ${total} plants (${Math.floor(share * 100)} %)`
}

function remaining(done: number, total: number | undefined, rate: number): string {
  return total === undefined || done >= total || rate === 0 ? '' : `, ${durationText((total - done) / rate)} left`
}

function bar(share: number): string {
  const filled = Math.round(share * barWidth)
  return `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}]`
}

function durationText(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`
}
