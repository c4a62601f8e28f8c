// What clients of two service processes are answered, while all goes well and while it does not,
// could have come from one place, in one order.
import { expect, test } from 'bun:test'
import { judgementOn } from '../support/history.ts'
import { trials } from '../support/trials.ts'

const lastsMs = 2000

test.each(trials)(
  'each history is linearizable: $name',
  async ({ run }) => {
    const history = await run(lastsMs)
    const judged = history.registers.length
    expect(judgementOn(history)).toEqual({ judged, notJudged: 0, offences: [] })
  },
  60_000,
)
