// Fastify with pg on Node: named statements on a pool of connections to PostgreSQL, one statement
// for the token and one for the operation. Start: node fastify-pg.js
import pg from 'pg'
import { hashOf, tokenHash, withoutEmptyTag } from './contract.js'
import { createSchema, deleteSchema, listen, listSchema, newApp, refuse } from './fastify.js'

const tokenCacheMs = Number(process.env.TOKEN_CACHE_MS ?? 0)

const pool = new pg.Pool({ connectionString: process.env.STORE, max: 10 })
pool.on('error', (error) => console.error(error.message))
await pool.query(`
  create table if not exists plants (
    account text not null, id bigint not null, name text not null, tag text, primary key (account, id)
  );
  create table if not exists tokens (hash bytea not null primary key, account text not null)`)
await pool.query(
  `insert into tokens (hash, account) values ($1, 'default') on conflict do nothing`,
  [hashOf(process.env.TOKEN)],
)

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

const app = newApp()
const knownAccounts = new Map()

app.addHook('onRequest', async (request, reply) => {
  const hash = tokenHash(request.headers.authorization)
  const account = hash && (await findAccount(hash))
  if (!account) return refuse(reply, 401, 'The token is missing or unknown.')
  request.account = account
})

/** The account of a token, asked for at every request if TOKEN_CACHE_MS is 0. */
async function findAccount(hash) {
  const key = hash.toString('hex')
  const known = knownAccounts.get(key)
  if (known && known.untilMs > Date.now()) return known.account
  const { rows } = await run('findAccount', [hash])
  const account = rows[0]?.account
  if (account && tokenCacheMs > 0)
    knownAccounts.set(key, { account, untilMs: Date.now() + tokenCacheMs })
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

process.on('SIGTERM', async () => {
  await app.close()
  await pool.end()
})
await listen(app)
