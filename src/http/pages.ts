// The pages for people: the OpenAPI document and the interactive reference that reads it. All are
// served from this machine; the security policy lets the browser ask nobody else.
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { openapiText } from '../contract/openapi.ts'
import { operations } from '../contract/operations.ts'
import { pageHeaders, type SharedHeaders, withHeaders } from './reply.ts'

export interface Page {
  readonly headers: SharedHeaders
  readonly body: () => string | Promise<Uint8Array<ArrayBuffer>>
}

export interface Pages {
  readonly openapi: Page
  readonly docs: Page
  readonly docsStart: Page
  readonly docsScript: Page
}

/** Scalar sets styles on elements, so inline styles must be allowed; scripts must come from here. */
const securityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Scalar's build for browsers: one file of its package, which is read when a browser asks for it. */
const scalarScript = new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url)

export function loadPages(): Pages {
  return {
    openapi: fixed(openapiText(), operations.openapi.success.media),
    docs: fixed(asset('page.html'), operations.docs.success.media, { 'content-security-policy': securityPolicy }),
    docsStart: fixed(asset('start.js'), operations.docsStart.success.media),
    docsScript: {
      headers: pageHeaders(operations.docsScript.success.media),
      body: async () => new Uint8Array(await readFile(scalarScript)),
    },
  }
}

function fixed(body: string, media: string | undefined, headers: Readonly<Record<string, string>> = {}): Page {
  return { headers: withHeaders(pageHeaders(media), headers), body: () => body }
}

function asset(name: string): string {
  return readFileSync(new URL(`./reference/${name}`, import.meta.url), 'utf8')
}
