// Opening a store, and what its operator is told if that or its use fails.
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Refused } from '../../src/refused.ts'
import { nothingDone } from '../../src/stores/failures.ts'
import { forOperator, openStore } from '../../src/stores/open.ts'
import { breakDown, folderMaker } from '../support/service.ts'
import { storeOptions } from '../support/stores.ts'

const folder = folderMaker()

function locationIn(home: string) {
  return { scheme: 'sqlite', path: join(home, 'plants.db') } as const
}

describe('a defect of the program', () => {
  test('while a store is opened is not told as a refusal of the store', async () => {
    const note = (): never => {
      throw new TypeError('undefined is not an object')
    }
    const opening = openStore(locationIn(folder()), { ...storeOptions, use: 'create', note })
    const error = await opening.then(() => undefined).catch((reason: Error) => reason)
    expect(error).not.toBeInstanceOf(Refused)
    expect(error?.cause).toBeInstanceOf(TypeError)
  })

  test('in an operation of a store is told with its stack, unlike a broken disk', async () => {
    const location = locationIn(folder())
    const store = await openStore(location, { ...storeOptions, use: 'create' })
    const defect = new TypeError('undefined is not an object')
    breakDown(store.plants, 'list', nothingDone(defect))
    breakDown(store.tokens, 'list', nothingDone(new Error('disk I/O error')))
    const { plants, tokens } = forOperator(store, location)
    let told: unknown
    try {
      plants.list('a', { limit: 1 })
    } catch (error) {
      told = error
    }
    expect(told).toEqual(
      new Error(`The work on the store ${location.path} failed.`, { cause: defect }),
    )
    expect(told).not.toBeInstanceOf(Refused)
    expect(() => tokens.list('a')).toThrow(Refused)
    expect(() => tokens.list('a')).toThrow(
      `The store ${location.path} cannot be used: disk I/O error.`,
    )
    await store.close()
  })
})
