// The pages for people: placeholder until the reference page lands.
export interface Page {
  readonly body: string | Uint8Array<ArrayBuffer>
  readonly headers: Readonly<Record<string, string>>
}
export interface Pages {
  readonly openapi: Page
  readonly docs: Page
  readonly docsScript: Page
  readonly docsStart: Page
}

import { openapiDocument } from '../contract/openapi.ts'
import { pageHeaders } from './reply.ts'
export function loadPages(): Pages {
  const p = (body: string, media: string): Page => ({ body, headers: pageHeaders(media) })
  return {
    openapi: p(JSON.stringify(openapiDocument()), 'application/json'),
    docs: p('', 'text/html'),
    docsScript: p('', 'text/javascript'),
    docsStart: p('', 'text/javascript'),
  }
}
