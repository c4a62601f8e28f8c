// What an operation answers, in HTTP's terms, before it becomes a Response.

export interface Reply {
  readonly status: number
  readonly headers: SharedHeaders
  readonly body: string | Uint8Array<ArrayBuffer> | AsyncIterable<string> | null
}

/** On every answer: no browser may take it for another type than it says. */
const everywhere = { 'x-content-type-options': 'nosniff' }

/** Headers of many answers, which nobody may change. */
export type SharedHeaders = Omit<Headers, 'set' | 'append' | 'delete'>

// Made once: a Response copies Headers for less than it takes to read them from an object.

/** On answers that belong to a caller or a moment: nobody may keep them. */
export const bareHeaders: SharedHeaders = new Headers({ ...everywhere, 'cache-control': 'no-store' })

export const jsonHeaders = withHeaders(bareHeaders, { 'content-type': 'application/json' })

/** On pages, which are the same for everybody but may change with the next release. */
export function pageHeaders(media = 'application/octet-stream'): SharedHeaders {
  return new Headers({ 'content-type': media, 'cache-control': 'no-cache', ...everywhere })
}

/** What a Response is made with; it copies the headers. */
export function responseInit({ status, headers }: Reply): ResponseInit {
  return { status, headers: headers as Headers }
}

/** The same headers and some more. */
export function withHeaders(headers: SharedHeaders, more: Readonly<Record<string, string>>): SharedHeaders {
  const all = new Headers(headers as Headers)
  for (const [name, value] of Object.entries(more)) all.set(name, value)
  return all
}
