// The writer's thread may die; the store must not die with it, and says exactly what became of the
// writes.
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { Failure } from '../../../src/domain/failure.ts'
import { placeOfFile, placeOfLog } from '../../../src/stores/sqlite/file.ts'
import { openChannel, outcomesOf } from '../../../src/stores/sqlite/writer/channel.ts'
import type { Write } from '../../../src/stores/sqlite/writer/crossing.ts'
import { ManualClock } from '../../support/clock.ts'
import { folderMaker } from '../../support/service.ts'
import { openFile } from '../../support/stores.ts'

const folder = folderMaker()
const followed = 'the writer of the store had died; a new one takes over'
const plant = { id: 1n, name: 'x', tag: null, idempotencyKey: null }
const create: Write = { kind: 'createPlant', account: 'a', plant }
/** The thread cannot read it, and dies of it. */
const deadly = [{ kind: 'deletePlant', account: 'a', id: 'no number' } as unknown as Write]
const ofThat = 'SyntaxError: Failed to parse String to BigInt'

/** The refusal of a commit that fails, and its cause. */
async function failureOf(commit: Promise<unknown>): Promise<[string, unknown]> {
  const failure = await commit.then(undefined, (error: Failure) => error)
  if (!(failure instanceof Failure)) throw new Error('the commit did not fail')
  return [failure.refusal, String(failure.cause)]
}

describe('the writer', () => {
  test('is followed by a new one a second after its start if it dies, and the operator is told why', async () => {
    const path = `${folder()}/plants.db`
    await (await openFile(path)).close()
    const clock = new ManualClock()
    const warnings: unknown[][] = []
    const channel = await openChannel({ path, place: [] }, clock, (...of) => warnings.push(of))
    expect(await failureOf(channel.commit(deadly))).toEqual(['outcome-unknown', ofThat])
    // Not at once: a writer that dies at its start must not be started without a pause.
    await clock.advance(999)
    expect(await failureOf(channel.commit([create]))).toEqual(['store-unavailable', ofThat])
    expect(warnings).toEqual([])
    await clock.advance(1)
    expect(await channel.commit([create])).toEqual([1])
    expect(warnings.map(([what, why]) => [what, String(why)])).toEqual([[followed, ofThat]])
    await channel.close()
    const store = await openFile(path, { use: 'existing' })
    expect((await store.plants.list('a', { limit: 2 })).plants).toHaveLength(1)
    await store.close()
  })

  test('is followed only on the very files that it had, and is tried once a second until then', async () => {
    const path = `${folder()}/plants.db`
    const store = await openFile(path)
    const clock = new ManualClock()
    const warnings: unknown[][] = []
    const place = [...placeOfFile(path), ...placeOfLog(path)]
    const channel = await openChannel({ path, place }, clock, (...of) => warnings.push(of))
    const failure = async (): Promise<unknown> =>
      ((await channel.commit([create]).then(undefined, (error) => error)) as Error).cause
    renameSync(path, `${path}.moved`)
    expect(await failureOf(channel.commit(deadly))).toEqual(['outcome-unknown', ofThat])
    await clock.advance(1000)
    const first = await failure()
    expect(String(first)).toContain(`${path} was removed`)
    await clock.advance(999)
    expect(await failure()).toBe(first)
    await clock.advance(1)
    const second = await failure()
    expect(second).not.toBe(first)
    expect(String(second)).toContain(`${path} was removed`)
    expect(existsSync(path)).toBe(false)
    await (await openFile(`${path}.other`)).close()
    renameSync(`${path}.other`, path)
    const before = readFileSync(path)
    await clock.advance(1000)
    expect(String(await failure())).toContain(`${path} was removed or replaced`)
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(warnings).toEqual([])
    renameSync(`${path}.moved`, path)
    await clock.advance(1000)
    expect(await channel.commit([create])).toEqual([1])
    // Of what the first one died, not why the others could not start.
    expect(warnings.map(([what, why]) => [what, String(why)])).toEqual([[followed, ofThat]])
    await channel.close()
    await store.close()
  })
})

test('a batch that failed counts as not done if it was undone, and as unknown if it was not', () => {
  expect(() => outcomesOf({ failed: 'disk full', undone: true })).toThrow(
    expect.objectContaining({ refusal: 'store-unavailable', cause: new Error('disk full') }),
  )
  expect(() => outcomesOf({ failed: 'input output error', undone: false })).toThrow(
    expect.objectContaining({ refusal: 'outcome-unknown', cause: new Error('input output error') }),
  )
})
