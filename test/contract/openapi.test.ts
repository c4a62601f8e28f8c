// The OpenAPI document: valid, up to date, and true to the answers of the service.
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { openapiText } from '../../src/contract/openapi.ts'
import { operations } from '../../src/contract/operations.ts'
import { refusals } from '../../src/contract/refusals.ts'
import { type Answer, type TestService, withService } from '../support/service.ts'

interface PublishedOperation {
  readonly security: readonly unknown[]
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly headers?: object
        readonly content?: Readonly<Record<string, { readonly examples?: object }>>
      }
    >
  >
}

const document = JSON.parse(openapiText()) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, PublishedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}

describe('the OpenAPI document', () => {
  test('is the committed one and the served one', () =>
    withService(async (service) => {
      // If the copy is stale, run: npm run openapi
      expect(readFileSync('openapi.json', 'utf8')).toBe(`${openapiText('/', 2)}\n`)
      expect((await service.call('GET', '/openapi.json')).text).toBe(openapiText())
    }))

  test('is valid by the official schema of OpenAPI 3.1', async () => {
    const validator = new Validator()
    expect(await validator.validate(structuredClone(document))).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    expect((await validator.validate({ openapi: '3.1.1', info: {} })).valid).toBe(false)
  })

  test('publishes the exact bounds of an id, in the body and in the path', () => {
    const text = openapiText()
    expect(
      text.match(/"minimum":-9223372036854775808,"maximum":9223372036854775807/g)?.length,
    ).toBeGreaterThanOrEqual(2)
    expect(text).not.toContain('9223372036854776')
  })

  test('publishes just the members that a plant is answered with', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const { NewPlant, Plant } = document.components.schemas as Record<
        string,
        { readonly properties: Readonly<Record<string, { readonly examples: readonly unknown[] }>> }
      >
      const sent = Object.entries(NewPlant?.properties ?? {}).map(([name, { examples }]) => [
        name,
        examples[0],
      ])
      const body = JSON.stringify(Object.fromEntries(sent))
      const created = await service.call('POST', '/plants', { token, body })
      const [listed] = (await service.call('GET', '/plants', { token })).json as object[]
      const members = Object.keys(Plant?.properties ?? {})
      expect(Object.keys(created.json as object)).toEqual(members)
      expect(Object.keys(listed ?? {})).toEqual(members)
    }))

  test('declares the challenge, the link and the retry', () => {
    const create = document.paths['/plants']?.['post']?.responses
    expect(Object.keys(create ?? {}).sort()).toEqual([
      '200',
      '400',
      '401',
      '403',
      '409',
      '413',
      '415',
      '422',
      '500',
      '503',
    ])
    expect(create?.['401']?.headers).toHaveProperty('WWW-Authenticate')
    expect(create?.['403']?.headers).toHaveProperty('WWW-Authenticate')
    expect(create?.['503']?.headers).toHaveProperty('Retry-After')
    expect(document.paths['/plants']?.['get']?.responses['200']?.headers).toHaveProperty('Link')
    expect(Object.keys(document.paths['/plants/{id}']?.['delete']?.responses ?? {}).sort()).toEqual(
      ['204', '400', '401', '403', '404', '500', '503'],
    )
  })

  test('gives every operation an access of its own, and the three the bearer scheme', () => {
    for (const operation of Object.values(operations))
      expect(operation.access).toMatch(/^(public|plants:read|plants:write)$/)
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const operation of Object.values(methods))
        expect(operation.security).toEqual(path.startsWith('/plants') ? [{ bearer: [] }] : [])
    }
  })
})

describe('the examples of refusals', () => {
  // For each refusal that a caller can cause, a request that causes it.
  const provoke: Readonly<
    Record<string, (service: TestService, token: string) => Promise<Answer>>
  > = {
    'input-invalid': (service, token) =>
      service.call('POST', '/plants', { token, body: '{"id":1,"name":7}' }),
    'token-missing': (service) => service.call('GET', '/plants'),
    'token-refused': (service) => service.call('GET', '/plants', { token: 'x' }),
    'scope-missing': async (service) =>
      service.call('POST', '/plants', {
        token: await service.tokenFor('a', { scopes: ['plants:read'] }),
      }),
    'path-unknown': (service) => service.call('GET', '/nowhere'),
    'plant-missing': (service, token) => service.call('DELETE', '/plants/404', { token }),
    'method-not-allowed': (service) => service.call('GET', '/plants/7'),
    'id-taken': (service, token) =>
      service.call('POST', '/plants', { token, body: '{"id":7,"name":"y"}' }),
    'body-too-large': (service, token) =>
      service.call('POST', '/plants', { token, body: 'x'.repeat(1_048_577) }),
    'media-type-unsupported': (service, token) =>
      service.call('POST', '/plants', {
        token,
        body: 'x',
        headers: { 'Content-Type': 'text/plain' },
      }),
    'encoding-unsupported': (service, token) =>
      service.call('POST', '/plants', { token, body: 'x', headers: { 'Content-Encoding': 'br' } }),
    'idempotency-key-reused': (service, token) =>
      service.call('POST', '/plants', {
        token,
        body: '{"id":7,"name":"y"}',
        headers: { 'Idempotency-Key': 'k' },
      }),
  }

  test.each(Object.keys(provoke))('%s is answered just as the document says', (name) =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await service.call('POST', '/plants', {
        token,
        body: '{"id":7,"name":"x"}',
        headers: { 'Idempotency-Key': 'k' },
      })
      const form = refusals[name as keyof typeof refusals]
      const { status, sentence, header, exampleDetail = '' } = form
      const answer = await (
        provoke[name] as (service: TestService, token: string) => Promise<Answer>
      )(service, token)
      expect(answer.text).toBe(JSON.stringify({ error: status, message: sentence(exampleDetail) }))
      expect(answer.status).toBe(status)
      if (header !== undefined && header.name !== 'Connection')
        expect(answer.headers.get(header.name)).toBe(header.value(exampleDetail))
    }),
  )
})
