// Express 5 with better-sqlite3 on Node: prepared statements, a compiled schema for what comes in,
// neither banner nor ETags. Start: NODE_ENV=production node express-better-sqlite3.js
import { hash } from 'node:crypto'
import { Ajv } from 'ajv'
import Database from 'better-sqlite3'
import express from 'express'

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

const isNewPlant = new Ajv().compile({
  type: 'object',
  required: ['id', 'name'],
  properties: {
    id: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
    name: { type: 'string' },
    tag: { type: 'string' },
  },
})

const app = express()
app.disable('x-powered-by')
app.disable('etag')

app.use((request, response, next) => {
  const token = bearerToken(request.get('authorization'))
  const found = token && statements.findAccount.get(hash('sha256', token, 'buffer'))
  if (!found) return refuse(response, 401, 'The token is missing or unknown.')
  response.locals.account = found.account
  next()
})

app.post('/plants', express.json(), ({ body }, response) => {
  if (!isNewPlant(body)) return refuse(response, 400, 'The body is no valid plant.')
  const { id, name, tag } = body
  const { changes } = statements.createPlant.run(response.locals.account, id, name, tag ?? null)
  if (changes === 0) return refuse(response, 409, 'A plant with this id exists already.')
  response.json({ name, tag })
})

app.get('/plants', ({ query }, response) => {
  const limit = query.limit === undefined ? -1 : wholeNumber(query.limit)
  if (limit === undefined || limit > 2 ** 31 - 1)
    return refuse(response, 400, 'The limit is no whole number.')
  response.json(statements.listPlants.all(response.locals.account, limit).map(withoutEmptyTag))
})

app.delete('/plants/:id', ({ params }, response) => {
  const id = wholeNumber(params.id.replace(/^-/, ''))
  if (id === undefined) return refuse(response, 400, 'The id is no whole number.')
  const { changes } = statements.deletePlant.run(
    response.locals.account,
    params.id.startsWith('-') ? -id : id,
  )
  if (changes === 0) return refuse(response, 404, 'There is no plant with this id.')
  response.status(204).end()
})

app.use((_request, response) => refuse(response, 404, 'There is nothing here.'))
app.use((error, _request, response, _next) => refuse(response, error.status ?? 500, error.message))

function bearerToken(header) {
  return header?.startsWith('Bearer ') ? header.slice('Bearer '.length) : undefined
}

function wholeNumber(text) {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(number) ? number : undefined
}

function withoutEmptyTag({ name, tag }) {
  return tag === null ? { name } : { name, tag }
}

function refuse(response, status, message) {
  response.status(status).json({ error: status, message })
}

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
process.on('SIGTERM', () => server.close(() => database.close()))
