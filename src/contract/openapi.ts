// The OpenAPI 3.1 document, made from the operations, the shapes and the table of refusals.
import { type Operation, operations } from './operations.ts'
import { newPlantShape, plantShape } from './plants.ts'
import { type Refusal, refusals } from './refusals.ts'
import type { PublishedSchema } from './schema.ts'

type Json = Readonly<Record<string, unknown>>

const json = 'application/json'

/** Refusals of every operation, and those of every operation that needs a token. */
const refusalsOfEverything = ['request-malformed', 'internal'] as const
const refusalsOfCallers = [
  'token-missing',
  'token-refused',
  'scope-missing',
  'store-unavailable',
] as const

/** The document as JSON text, with every digit of its 64-bit bounds. */
export function openapiText(indent?: number): string {
  return JSON.stringify(
    openapiDocument(),
    (_name, value) => (typeof value === 'bigint' ? rawJson(String(value)) : value),
    indent,
  )
}

/** JSON.rawJSON (ECMAScript 2026), which TypeScript's library does not declare yet. */
const { rawJSON: rawJson } = JSON as unknown as { readonly rawJSON: (text: string) => object }

function openapiDocument(): Json {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Plants',
      version: '1.0.0',
      summary: 'Create, list and delete plants.',
      description: introduction,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This service' }],
    tags: [
      { name: 'Plants', description: "The plants of the caller's account." },
      { name: 'Health', description: 'For load balancers and orchestrators. No token is needed.' },
    ],
    paths: paths(),
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
}

const introduction = [
  'Every body is JSON, whatever `Accept` says. Every failure carries an `Error`: the HTTP status and one sentence that names the field and what is wrong with it.',
  'A token opens one account, which sees and deletes exactly the plants that it created; two accounts may use the same id. A write that is answered with 200 or 204 is durable.',
  '`HEAD` answers as `GET` without the body. `OPTIONS` answers 204 with `Allow` on every path. An unknown path gets 404, another method on a known path 405 with `Allow`. A method that nobody knows gets 501 or a closed connection. Unknown members and query parameters are ignored.',
].join('\n\n')

const errorSchema: PublishedSchema = {
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
  Error: errorSchema,
} as const satisfies Record<string, PublishedSchema>

/** A real answer of each operation. */
const successExamples: Readonly<Record<string, unknown>> = {
  createPlant: { name: 'Monstera deliciosa', tag: 'indoor' },
  listPlants: [{ name: 'Monstera deliciosa', tag: 'indoor' }, { name: 'Ginkgo biloba' }],
  livez: { status: 'alive' },
  readyz: { status: 'ready' },
}

function paths(): Json {
  const byPath: Record<string, Record<string, Json>> = {}
  for (const [id, operation] of Object.entries(operations) as [string, Operation][]) {
    if (operation.unpublished) continue
    byPath[operation.path] = {
      ...byPath[operation.path],
      [operation.method.toLowerCase()]: published(id, operation),
    }
  }
  return byPath
}

function published(id: string, operation: Operation): Json {
  const isPublic = operation.access === 'public'
  return {
    operationId: id,
    summary: operation.summary,
    description: description(operation),
    tags: [isPublic ? 'Health' : 'Plants'],
    security: isPublic ? [] : [{ bearer: [] }],
    ...parameters(operation),
    ...requestBody(operation),
    responses: { ...success(id, operation), ...failures(operation) },
  }
}

function description({ description: text, access, summary }: Operation): string {
  const scope = access === 'public' ? undefined : `Needs the scope \`${access}\`.`
  return [text ?? summary, scope].filter((part) => part !== undefined).join('\n\n')
}

function parameters({ takes }: Operation): Json {
  const list = Object.values(takes).map(({ in: place, name, parameter }) => {
    const {
      description: text,
      examples,
      ...schema
    } = parameter.published as { description?: string; examples?: readonly unknown[] }
    return {
      name,
      in: place,
      required: place === 'path',
      description: text,
      schema,
      example: examples?.[0],
    }
  })
  return list.length === 0 ? {} : { parameters: list }
}

function requestBody({ body }: Operation): Json {
  if (body === undefined) return {}
  const examples = {
    small: {
      summary: 'A plant with a tag',
      value: { id: 7, name: 'Monstera deliciosa', tag: 'indoor' },
    },
    untagged: { summary: 'A plant without a tag', value: { id: 8, name: 'Ginkgo biloba' } },
  }
  return {
    requestBody: {
      required: true,
      content: { [json]: { schema: { $ref: '#/components/schemas/NewPlant' }, examples } },
    },
  }
}

function success(
  id: string,
  { success: { status, description: text, media, shape, header } }: Operation,
): Json {
  const headers =
    header === undefined
      ? {}
      : { headers: { [header.name]: publishedHeader(header.description, header.example) } }
  const content =
    media === undefined || shape === undefined
      ? {}
      : {
          content: {
            [media]: {
              schema: { $ref: `#/components/schemas/${shape}` },
              example: successExamples[id],
            },
          },
        }
  return { [status]: { description: text, ...headers, ...content } }
}

/** One response for each status, with an example for each of its refusals. */
function failures({ access, refusals: own }: Operation): Json {
  const all = new Set<Refusal>([
    ...refusalsOfEverything,
    ...(access === 'public' ? [] : refusalsOfCallers),
    ...own,
  ])
  const statuses = [...new Set([...all].map((refusal) => refusals[refusal].status))]
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      failure(
        status,
        [...all].filter((refusal) => refusals[refusal].status === status),
      ),
    ]),
  )
}

function failure(status: number, those: readonly Refusal[]): Json {
  const forms = those.map((refusal) => refusals[refusal])
  const headers = Object.fromEntries(
    forms.flatMap(({ header, when, exampleDetail = '' }) =>
      header === undefined
        ? []
        : [[header.name, publishedHeader(when, header.value(exampleDetail))]],
    ),
  )
  const examples = Object.fromEntries(
    those.map((refusal) => {
      const { when, sentence, exampleDetail } = refusals[refusal]
      const value = { error: status, message: sentence(exampleDetail ?? '') }
      return [refusal, { summary: when, value }]
    }),
  )
  return {
    description: forms.map(({ when }) => when).join(' '),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { [json]: { schema: { $ref: '#/components/schemas/Error' }, examples } },
  }
}

function publishedHeader(text: string, example: string): Json {
  return { description: text, schema: { type: 'string' }, example }
}
