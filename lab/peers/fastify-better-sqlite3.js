// Fastify with better-sqlite3 on Node: prepared statements, the token in an onRequest hook. Start:
// node fastify-better-sqlite3.js
import Database from 'better-sqlite3'
import { tokenHash, withoutEmptyTag } from './contract.js'
import { createSchema, deleteSchema, listen, listSchema, newApp, refuse } from './fastify.js'
import { prepareStore } from './sqlite.js'

const database = new Database(process.env.STORE)
const statements = prepareStore(database)
const app = newApp()

app.addHook('onRequest', (request, reply, done) => {
  const hash = tokenHash(request.headers.authorization)
  const found = hash && statements.findAccount.get(hash)
  if (!found) return refuse(reply, 401, 'The token is missing or unknown.')
  request.account = found.account
  done()
})

app.post('/plants', { schema: createSchema }, ({ account, body: { id, name, tag } }, reply) => {
  const { changes } = statements.createPlant.run(account, id, name, tag ?? null)
  if (changes === 0) return refuse(reply, 409, 'A plant with this id exists already.')
  reply.send({ name, tag })
})

app.get('/plants', { schema: listSchema }, ({ account, query }, reply) => {
  reply.send(statements.listPlants.all(account, query.limit ?? -1).map(withoutEmptyTag))
})

app.delete('/plants/:id', { schema: deleteSchema }, ({ account, params }, reply) => {
  const { changes } = statements.deletePlant.run(account, params.id)
  if (changes === 0) return refuse(reply, 404, 'There is no plant with this id.')
  reply.code(204).send()
})

process.on('SIGTERM', async () => {
  await app.close()
  database.close()
})
await listen(app)
