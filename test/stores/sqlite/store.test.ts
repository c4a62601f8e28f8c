// The promises of a store, held by the store on SQLite.
import { rmSync } from 'node:fs'
import { temporaryFolder } from '../../support/service.ts'
import { openFile } from '../../support/stores.ts'
import { describeStore } from '../conformance.ts'

describeStore('SQLite', async () => {
  const folder = temporaryFolder()
  const path = `${folder}/plants.db`
  const store = await openFile(path)
  return {
    store,
    reopen: () => openFile(path, { use: 'existing' }),
    passTime: () => {},
    dispose: async () => {
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
})
