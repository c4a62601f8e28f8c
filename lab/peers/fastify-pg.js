// Fastify with pg on Node: as fastify-better-sqlite3.js, with named statements on a pool of
// connections to PostgreSQL, one statement for the token and one for the operation.
import { hash } from 'node:crypto'
import { Ajv } from 'ajv'
import { fastify } from 'fastify'
import pg from 'pg'

const poolSize = Number(process.env.POOL_SIZE ?? 10)
const tokenCacheMs = Number(process.env.TOKEN_CACHE_MS ?? 0)

const pool = new pg.Pool({ connectionString: process.env.STORE, max: poolSize })
pool.on('error', (error) => console.error(error.message))

const statements = {
  findAccount: 'select account from tokens where hash = $1',
  createPlant:
    'insert into plants (account, id, name, tag) values ($1, $2, $3, $4) on conflict do nothing',
  // PostgreSQL takes null as no limit.
  listPlants: 'select name, tag from plants where account = $1 order by id limit $2',
  deletePlant: 'delete from plants where account = $1 and id = $2',
}

/** A named query is prepared once on each connection. */
function run(name, values) {
  return pool.query({ name, text: statements[name], values })
}

async function prepareStore() {
  await pool.query(`
    create table if not exists plants (
      account text not null, id bigint not null, name text not null, tag text, primary key (account, id)
    );
    create table if not exists tokens (hash bytea not null primary key, account text not null)`)
  await pool.query(
    `insert into tokens (hash, account) values ($1, 'default') on conflict do nothing`,
    [hash('sha256', process.env.TOKEN, 'buffer')],
  )
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
app.addHook('onRequest', async (request, reply) => {
  const token = bearerToken(request.headers.authorization)
  const account = token && (await findAccount(hash('sha256', token, 'hex')))
  if (!account) return refuse(reply, 401, 'The token is missing or unknown.')
  request.account = account
})

const knownAccounts = new Map()

/** The account of a token, asked for at every request where TOKEN_CACHE_MS is 0. */
async function findAccount(hexHash) {
  const known = knownAccounts.get(hexHash)
  if (known && known.untilMs > Date.now()) return known.account
  const { rows } = await run('findAccount', [Buffer.from(hexHash, 'hex')])
  const account = rows[0]?.account
  if (account && tokenCacheMs > 0)
    knownAccounts.set(hexHash, { account, untilMs: Date.now() + tokenCacheMs })
  return account
}

app.post(
  '/plants',
  { schema: createSchema },
  async ({ account, body: { id, name, tag } }, reply) => {
    const { rowCount } = await run('createPlant', [account, id, name, tag ?? null])
    return rowCount === 0
      ? refuse(reply, 409, 'A plant with this id exists already.')
      : { name, tag }
  },
)

app.get('/plants', { schema: listSchema }, async ({ account, query }) => {
  const { rows } = await run('listPlants', [account, query.limit ?? null])
  return rows.map(withoutEmptyTag)
})

app.delete('/plants/:id', { schema: deleteSchema }, async ({ account, params }, reply) => {
  const { rowCount } = await run('deletePlant', [account, params.id])
  return rowCount === 0
    ? refuse(reply, 404, 'There is no plant with this id.')
    : reply.code(204).send()
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

await prepareStore()
process.on('SIGTERM', async () => {
  await app.close()
  await pool.end()
})
console.log(
  `listening on ${await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })}`,
)
