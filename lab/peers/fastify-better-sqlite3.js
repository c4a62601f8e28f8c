// Fastify with better-sqlite3 on Node: schemas for what comes in and what goes out, prepared
// statements, the token in an onRequest hook. Start: node fastify-better-sqlite3.js
import { hash } from 'node:crypto'
import { Ajv } from 'ajv'
import Database from 'better-sqlite3'
import { fastify } from 'fastify'

const database = openStore(process.env.STORE)
const statements = {
  findAccount: database.prepare('select account from tokens where hash = ?'),
  createPlant: database.prepare(
    'insert into plants (account, id, name, tag) values (?, ?, ?, ?) on conflict do nothing',
  ),
  // SQLite takes a negative limit as none.
  listPlants: database.prepare(
    'select name, tag from plants where account = ? order by id limit ?',
  ),
  deletePlant: database.prepare('delete from plants where account = ? and id = ?'),
}

function openStore(path) {
  const opened = new Database(path)
  opened.pragma('journal_mode = wal')
  opened.pragma('synchronous = full')
  opened.exec(`
    create table if not exists plants (
      account text not null, id integer not null, name text not null, tag text, primary key (account, id)
    ) strict, without rowid;
    create table if not exists tokens (hash blob not null primary key, account text not null) strict, without rowid`)
  const insertToken = opened.prepare(
    `insert into tokens (hash, account) values (?, 'default') on conflict do nothing`,
  )
  insertToken.run(hash('sha256', process.env.TOKEN, 'buffer'))
  return opened
}

const id = { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
const plant = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, tag: { type: 'string' } },
}
const newPlant = { ...plant, required: ['id', 'name'], properties: { id, ...plant.properties } }
const failure = {
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'integer' }, message: { type: 'string' } },
}
const limit = { type: 'integer', minimum: 0, maximum: 2 ** 31 - 1 }

const createSchema = { body: newPlant, response: { 200: plant, '4xx': failure } }
const listSchema = {
  querystring: { type: 'object', properties: { limit } },
  response: { 200: { type: 'array', items: plant }, '4xx': failure },
}
const deleteSchema = {
  params: { type: 'object', required: ['id'], properties: { id } },
  response: { 204: { type: 'null' }, '4xx': failure },
}

const app = fastify()

// Numbers in a path and in a query come as text, those in a body do not.
const strict = new Ajv({ coerceTypes: false })
const coercing = new Ajv({ coerceTypes: true })
app.setValidatorCompiler(({ schema, httpPart }) =>
  (httpPart === 'body' ? strict : coercing).compile(schema),
)

app.decorateRequest('account', '')
app.addHook('onRequest', (request, reply, done) => {
  const token = bearerToken(request.headers.authorization)
  const found = token && statements.findAccount.get(hash('sha256', token, 'buffer'))
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

app.setNotFoundHandler((_request, reply) => refuse(reply, 404, 'There is nothing here.'))
app.setErrorHandler((error, _request, reply) =>
  refuse(reply, error.statusCode ?? 500, error.message),
)

function bearerToken(header) {
  return header?.startsWith('Bearer ') ? header.slice('Bearer '.length) : undefined
}

function withoutEmptyTag({ name, tag }) {
  return tag === null ? { name } : { name, tag }
}

function refuse(reply, status, message) {
  return reply.code(status).send({ error: status, message })
}

process.on('SIGTERM', async () => {
  await app.close()
  database.close()
})
console.log(
  `listening on ${await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })}`,
)
