// The writer's thread may die; the store must not die with it.
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { placeOfFile, placeOfLog } from '../../../src/stores/sqlite/file.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { writerThread } from '../../../src/stores/sqlite/writerThread.ts'
import { folderMaker } from '../../support/service.ts'

const folder = folderMaker()
const batch = JSON.stringify([['createPlant', 'a', '1', 'x', null, null]])

describe('the writer', () => {
  test('is followed by a new one when it dies, and the operator is told why', async () => {
    const path = `${folder()}/plants.db`
    await (await openSqliteStore(path, { use: 'create' })).close()
    const warnings: unknown[][] = []
    const writer = await writerThread({ path, place: [] }, (...warning) => warnings.push(warning))
    await writer.ready()
    // No batch, so it dies of it.
    await expect(writer.send('nonsense')).rejects.toThrow()
    // Not at once: a writer that dies at its start must not be started without a pause.
    await expect(writer.ready()).rejects.toThrow('JSON')
    await expect(writer.send(batch)).rejects.toThrow('JSON')
    expect(warnings).toEqual([])
    await Bun.sleep(1000)
    await writer.ready()
    expect(JSON.parse(await writer.send(batch))).toEqual({ outcomes: [1] })
    expect(warnings).toEqual([[expect.stringContaining('a new one takes over'), expect.any(Error)]])
    await writer.close()
    const store = await openSqliteStore(path, { use: 'existing' })
    expect((await store.plants.list('a', { limit: 2 })).plants).toHaveLength(1)
    await store.close()
  })

  test('is followed only on the very files that it had, and is tried once a second until then', async () => {
    const path = `${folder()}/plants.db`
    const store = await openSqliteStore(path, { use: 'create' })
    const warnings: unknown[][] = []
    const place = [...placeOfFile(path), ...placeOfLog(path)]
    const writer = await writerThread({ path, place }, (...warning) => warnings.push(warning))
    renameSync(path, `${path}.moved`)
    await expect(writer.send('nonsense')).rejects.toThrow('JSON')
    await Bun.sleep(1000)
    const failures = new Set<unknown>()
    const beganMs = performance.now()
    while (performance.now() - beganMs < 1500) {
      await writer.ready().catch((failure) => failures.add(failure))
      await Bun.sleep(5)
    }
    expect([...failures].map(String)).toEqual(
      Array.from(failures, () => expect.stringContaining(`${path} was removed`)),
    )
    expect(failures.size).toBeWithin(1, 4)
    expect(existsSync(path)).toBe(false)
    await (await openSqliteStore(`${path}.other`, { use: 'create' })).close()
    renameSync(`${path}.other`, path)
    const before = readFileSync(path)
    await Bun.sleep(1000)
    await expect(writer.ready()).rejects.toThrow(`${path} was removed or replaced`)
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(warnings).toEqual([])
    renameSync(`${path}.moved`, path)
    await Bun.sleep(1000)
    await writer.ready()
    expect(JSON.parse(await writer.send(batch))).toEqual({ outcomes: [1] })
    expect(warnings).toEqual([[expect.stringContaining('a new one takes over'), expect.any(Error)]])
    expect(String(warnings[0]?.[1])).toContain('JSON')
    await writer.close()
    await store.close()
  })
})
