import { rmSync } from 'node:fs'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { temporaryFolder } from '../../support/service.ts'
import { describeStore } from '../conformance.ts'

describeStore('SQLite', async () => {
  const folder = temporaryFolder()
  const path = `${folder}/plants.db`
  const store = await openSqliteStore(path, { use: 'create' })
  return {
    store,
    reopen: () => openSqliteStore(path, { use: 'existing' }),
    dispose: async () => {
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
})
