// Hono with bun:sqlite on Bun: cached statements, the bearer middleware and the Zod validator of its
// documentation. Start: bun hono-bun-sqlite.js
import { Database } from 'bun:sqlite'
import { zValidator } from '@hono/zod-validator'
import { Hono } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { HTTPException } from 'hono/http-exception'
import { z } from 'zod'
import { hashOf, withoutEmptyTag } from './contract.js'
import { prepareStore } from './sqlite.js'

const database = new Database(process.env.STORE, { create: true })
const statements = prepareStore(database)

const newPlant = z.object({ id: z.int(), name: z.string(), tag: z.string().optional() })
const listQuery = z.object({
  limit: z.string().regex(/^\d+$/).transform(Number).pipe(z.int32()).optional(),
})
const plantPath = z.object({
  id: z
    .string()
    .regex(/^-?\d+$/)
    .transform(Number)
    .pipe(z.int()),
})

/** The validator, with a refusal in the form of the contract. */
function validated(target, schema) {
  return zValidator(target, schema, ({ success, error }, context) => {
    if (!success)
      return refuse(
        context,
        400,
        error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
      )
  })
}

const app = new Hono()

const unauthorized = { message: { error: 401, message: 'The token is missing or unknown.' } }
app.use(
  bearerAuth({
    verifyToken: (token, context) => {
      const found = statements.findAccount.get(hashOf(token))
      context.set('account', found?.account)
      return found !== null
    },
    noAuthenticationHeader: unauthorized,
    invalidToken: unauthorized,
  }),
)

app.post('/plants', validated('json', newPlant), (context) => {
  const { id, name, tag } = context.req.valid('json')
  const { changes } = statements.createPlant.run(context.get('account'), id, name, tag ?? null)
  return changes === 0
    ? refuse(context, 409, 'A plant with this id exists already.')
    : context.json({ name, tag })
})

app.get('/plants', validated('query', listQuery), (context) => {
  const { limit } = context.req.valid('query')
  return context.json(
    statements.listPlants.all(context.get('account'), limit ?? -1).map(withoutEmptyTag),
  )
})

app.delete('/plants/:id', validated('param', plantPath), (context) => {
  const { id } = context.req.valid('param')
  const { changes } = statements.deletePlant.run(context.get('account'), id)
  return changes === 0
    ? refuse(context, 404, 'There is no plant with this id.')
    : context.body(null, 204)
})

app.notFound((context) => refuse(context, 404, 'There is nothing here.'))
app.onError((error, context) => {
  if (!(error instanceof HTTPException)) return refuse(context, 500, 'The server failed.')
  return error.res ?? refuse(context, error.status, error.message)
})

function refuse(context, status, message) {
  return context.json({ error: status, message }, status)
}

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 0),
  fetch: app.fetch,
})
process.on('SIGTERM', async () => {
  await server.stop()
  database.close()
  process.exit(0)
})
console.log(`listening on http://127.0.0.1:${server.port}`)
