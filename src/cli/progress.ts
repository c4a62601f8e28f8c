// Shows the progress of long work: a bar on a terminal, a plain line now and then elsewhere.
import type { World } from './world.ts'

/**
 * Shows the phases of a piece of work, one after another. `total` is how many parts a phase has, or
 * undefined if nobody knows.
 */
export function showPhases(world: Parameters<typeof startProgress>[0]): {
  readonly add: (phase: string, parts: number, total: number | undefined) => void
  /** Writes a line for people that the bar does not run into. */
  readonly tell: (text: string) => void
  readonly end: () => void
} {
  let shown: ({ readonly phase: string } & ReturnType<typeof startProgress>) | undefined
  return {
    add: (phase, parts, total) => {
      if (shown?.phase !== phase) {
        shown?.end()
        shown = { phase, ...startProgress(world, phase, total) }
      }
      shown.add(parts)
    },
    tell: (text) => {
      if (shown !== undefined && world.errorIsTerminal) world.draw('\r\u001b[K')
      world.tell(text)
    },
    end: () => shown?.end(),
  }
}

/** `total` is how many parts there are, or undefined if nobody knows. */
export function startProgress(
  world: Pick<World, 'errorIsTerminal' | 'draw' | 'tell' | 'clock'>,
  what: string,
  total: number | undefined,
): { readonly add: (parts: number) => void; readonly end: () => void } {
  const intervalMs = world.errorIsTerminal ? 100 : 5000
  const startedMs = world.clock.monotonicMs()
  let shownMs = startedMs
  let done = 0

  function show(): void {
    const seconds = (world.clock.monotonicMs() - startedMs) / 1000
    const rate = seconds === 0 ? 0 : done / seconds
    let numbers = `${done}${total === undefined ? '' : ` of ${total}`}, ${Math.round(rate)}/s`
    if (total !== undefined && done < total && rate > 0) {
      const left = Math.ceil((total - done) / rate)
      numbers += `, ${left < 60 ? '' : `${Math.floor(left / 60)} min `}${left % 60} s left`
    }
    const share = total === undefined ? undefined : total === 0 ? 1 : Math.min(done / total, 1)
    const percent = share === undefined ? '' : `${Math.floor(share * 100)} %`
    if (!world.errorIsTerminal) {
      world.tell(`${what}: ${percent === '' ? '' : `${percent}, `}${numbers}`)
      return
    }
    const bar = share === undefined ? '' : '#'.repeat(Math.round(share * 16)).padEnd(16, '.')
    // Shorter than eighty columns even for billions of plants: a line that wraps cannot be redrawn.
    world.draw(
      `\r${what.padEnd(9)} ${share === undefined ? '' : `[${bar}] ${percent.padStart(5)}  `}${numbers}\u001b[K`,
    )
  }

  return {
    add: (parts) => {
      done += parts
      const nowMs = world.clock.monotonicMs()
      if (nowMs - shownMs < intervalMs) return
      shownMs = nowMs
      show()
    },
    end: () => {
      show()
      if (world.errorIsTerminal) world.draw('\n')
    },
  }
}
