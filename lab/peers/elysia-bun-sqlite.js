// Elysia with bun:sqlite on Bun: cached statements, its own schemas for what comes in, the token in
// a derive. Start: bun elysia-bun-sqlite.js
import { Database } from 'bun:sqlite'
import { Elysia, t } from 'elysia'
import { tokenHash, withoutEmptyTag } from './contract.js'
import { prepareStore } from './sqlite.js'

const database = new Database(process.env.STORE, { create: true })
const statements = prepareStore(database)

const safeIds = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
// A t.Integer would take an id in quotes too, which paths and queries need and bodies must not have.
const newPlant = t.Object({
  id: t.Number({ multipleOf: 1, ...safeIds }),
  name: t.String(),
  tag: t.Optional(t.String()),
})
const listQuery = t.Object({ limit: t.Optional(t.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })) })
const plantPath = t.Object({ id: t.Integer(safeIds) })

const statuses = { VALIDATION: 400, PARSE: 400, NOT_FOUND: 404 }

const app = new Elysia()
  .onError(({ code, status }) => {
    const found = statuses[code] ?? 500
    return refuse(status, found, `The request was refused: ${code}.`)
  })
  .derive(({ headers: { authorization }, status }) => {
    const hash = tokenHash(authorization)
    const found = hash && statements.findAccount.get(hash)
    return found
      ? { account: found.account }
      : refuse(status, 401, 'The token is missing or unknown.')
  })
  .post(
    '/plants',
    ({ account, body: { id, name, tag }, status }) => {
      const { changes } = statements.createPlant.run(account, id, name, tag ?? null)
      return changes === 0
        ? refuse(status, 409, 'A plant with this id exists already.')
        : { name, tag }
    },
    { body: newPlant },
  )
  .get(
    '/plants',
    ({ account, query: { limit } }) =>
      statements.listPlants.all(account, limit ?? -1).map(withoutEmptyTag),
    {
      query: listQuery,
    },
  )
  .delete(
    '/plants/:id',
    ({ account, params: { id }, status }) => {
      const { changes } = statements.deletePlant.run(account, id)
      return changes === 0 ? refuse(status, 404, 'There is no plant with this id.') : status(204)
    },
    { params: plantPath },
  )
  .listen({ hostname: '127.0.0.1', port: Number(process.env.PORT ?? 0) })

function refuse(status, code, message) {
  return status(code, { error: code, message })
}

process.on('SIGTERM', async () => {
  await app.stop()
  database.close()
  process.exit(0)
})
console.log(`listening on http://127.0.0.1:${app.server.port}`)
