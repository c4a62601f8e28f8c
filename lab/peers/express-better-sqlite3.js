// Express 5 with better-sqlite3 on Node: prepared statements, a compiled schema for what comes in,
// neither banner nor ETags. Start: NODE_ENV=production node express-better-sqlite3.js
import { Ajv } from 'ajv'
import Database from 'better-sqlite3'
import express from 'express'
import { newPlant, tokenHash, withoutEmptyTag } from './contract.js'
import { prepareStore } from './sqlite.js'

const database = new Database(process.env.STORE)
const statements = prepareStore(database)
const isNewPlant = new Ajv().compile(newPlant)

const app = express()
app.disable('x-powered-by')
app.disable('etag')

app.use((request, response, next) => {
  const hash = tokenHash(request.get('authorization'))
  const found = hash && statements.findAccount.get(hash)
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

function wholeNumber(text) {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(number) ? number : undefined
}

function refuse(response, status, message) {
  response.status(status).json({ error: status, message })
}

const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
})
process.on('SIGTERM', () => server.close(() => database.close()))
