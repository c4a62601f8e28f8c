// What the two peers on Fastify have in common: schemas for what comes in and what goes out, and
// refusals in the form of the contract.
import { Ajv } from 'ajv'
import { fastify } from 'fastify'
import { failure, listQuery, newPlant, plant, plantPath } from './contract.js'

export const createSchema = { body: newPlant, response: { 200: plant, '4xx': failure } }
export const listSchema = {
  querystring: listQuery,
  response: { 200: { type: 'array', items: plant }, '4xx': failure },
}
export const deleteSchema = {
  params: plantPath,
  response: { 204: { type: 'null' }, '4xx': failure },
}

export function newApp() {
  const app = fastify()
  // Numbers in a path and in a query come as text, those in a body do not.
  const strict = new Ajv({ coerceTypes: false })
  const coercing = new Ajv({ coerceTypes: true })
  app.setValidatorCompiler(({ schema, httpPart }) =>
    (httpPart === 'body' ? strict : coercing).compile(schema),
  )
  app.decorateRequest('account', '')
  app.setNotFoundHandler((_request, reply) => refuse(reply, 404, 'There is nothing here.'))
  app.setErrorHandler((error, _request, reply) =>
    refuse(reply, error.statusCode ?? 500, error.message),
  )
  return app
}

export function refuse(reply, status, message) {
  return reply.code(status).send({ error: status, message })
}

export async function listen(app) {
  const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 0) })
  console.log(`listening on ${url}`)
}
