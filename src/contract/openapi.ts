// The OpenAPI 3.1 document, made from the operations, the shapes and the table of refusals.
import { type Operation, operations } from './operations.ts'
import { newPlantShape, plantShape } from './plants.ts'
import { type Refusal, refusals } from './refusals.ts'

const json = 'application/json'

/**
 * The document as JSON text, with every digit of its 64-bit bounds. `server` is the URL before all
 * paths, absolute or relative to the document's.
 */
export function openapiText(server = '/', indent?: number): string {
  const paths: Record<string, Record<string, object>> = {}
  for (const [id, operation] of Object.entries(operations) as [string, Operation][]) {
    if (operation.unpublished) continue
    const method = operation.method.toLowerCase()
    paths[operation.path] = { ...paths[operation.path], [method]: published(id, operation) }
  }
  const document = {
    openapi: '3.1.1',
    info: {
      title: 'Plants',
      version: '1.0.0',
      summary: 'Create, list and delete plants.',
      description: [
        'Every body is JSON, whatever `Accept` says. Every failure carries an `Error`: the HTTP status and one sentence that names the field and what is wrong with it.',
        'A token opens one account, which sees and deletes exactly the plants that it created; two accounts may use the same id. A write that is answered with 200 or 204 is durable.',
        '`HEAD` answers as `GET` without the body. `OPTIONS` answers 204 with `Allow` on every path. An unknown path gets 404, another method on a known path 405 with `Allow`. A method that nobody knows gets 501 or a closed connection. Unknown members and query parameters are ignored.',
      ].join('\n\n'),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: server, description: 'This service' }],
    tags: [
      { name: 'Plants', description: "The plants of the caller's account." },
      { name: 'Health', description: 'For load balancers and orchestrators. No token is needed.' },
    ],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'Issued by the operator: `bin/plants token issue`.',
        },
      },
      schemas,
    },
  }
  // JSON.rawJSON (ECMAScript 2026), which TypeScript's library does not declare yet.
  const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => object }
  const exact = (_name: string, value: unknown): unknown =>
    typeof value === 'bigint' ? rawJSON(String(value)) : value
  return JSON.stringify(document, exact, indent)
}

const schemas = {
  Plant: plantShape.published,
  NewPlant: newPlantShape.published,
  Plants: { title: 'Plants', type: 'array', items: { $ref: '#/components/schemas/Plant' } },
  Health: {
    title: 'Health',
    type: 'object',
    required: ['status'],
    properties: { status: { type: 'string', enum: ['alive', 'ready'] } },
  },
  Error: {
    title: 'Error',
    type: 'object',
    required: ['error', 'message'],
    properties: {
      error: { type: 'integer', format: 'int32', description: 'The HTTP status.', examples: [400] },
      message: {
        type: 'string',
        description: 'One sentence that says what is wrong.',
        examples: ['name must be a string, not a number.'],
      },
    },
  },
}

/** An operation as the document says it. A member that is undefined is left out of the text. */
function published(id: string, operation: Operation): object {
  const { access, summary, description = summary, takes, body, success } = operation
  const { status, shape, example, header } = success
  const isPublic = access === 'public'
  const parameters = Object.values(takes).map(({ in: place, name, parameter }) => {
    const { description, examples, ...schema } = parameter.published
    const example = (examples as readonly unknown[] | undefined)?.[0]
    return { name, in: place, required: place === 'path', description, schema, example }
  })
  return {
    operationId: id,
    summary,
    description: isPublic ? description : `${description}\n\nNeeds the scope \`${access}\`.`,
    tags: [isPublic ? 'Health' : 'Plants'],
    security: isPublic ? [] : [{ bearer: [] }],
    parameters: parameters.length === 0 ? undefined : parameters,
    requestBody: body && {
      required: true,
      content: {
        [json]: {
          schema: { $ref: '#/components/schemas/NewPlant' },
          examples: {
            small: {
              summary: 'A plant with a tag',
              value: { id: 7, name: 'Monstera deliciosa', tag: 'indoor' },
            },
            untagged: { summary: 'A plant without a tag', value: { id: 8, name: 'Ginkgo biloba' } },
          },
        },
      },
    },
    responses: {
      [status]: {
        description: success.description,
        headers: header && { [header.name]: publishedHeader(header.description, header.example) },
        content: shape && {
          [json]: { schema: { $ref: `#/components/schemas/${shape}` }, example },
        },
      },
      ...failures(operation),
    },
  }
}

/** One response for each status, with an example for each of its refusals. */
function failures({ access, refusals: own }: Operation): object {
  const all: Refusal[] = ['request-malformed', 'internal']
  if (access !== 'public')
    all.push('token-missing', 'token-refused', 'scope-missing', 'store-unavailable')
  const byStatus = Map.groupBy(new Set([...all, ...own]), (refusal) => refusals[refusal].status)
  const responses: Record<number, object> = {}
  for (const [status, those] of byStatus) {
    const headers: Record<string, object> = {}
    const examples: Record<string, object> = {}
    for (const refusal of those) {
      const { when, sentence, header, exampleDetail = '' } = refusals[refusal]
      if (header !== undefined)
        headers[header.name] = publishedHeader(when, header.value(exampleDetail))
      const value = { error: status, message: sentence(exampleDetail) }
      examples[refusal] = { summary: when, value }
    }
    responses[status] = {
      description: those.map((refusal) => refusals[refusal].when).join(' '),
      headers: Object.keys(headers).length === 0 ? undefined : headers,
      content: { [json]: { schema: { $ref: '#/components/schemas/Error' }, examples } },
    }
  }
  return responses
}

function publishedHeader(description: string, example: string): object {
  return { description, schema: { type: 'string' }, example }
}
