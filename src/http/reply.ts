// What an operation answers, in HTTP's terms, before it becomes a Response.

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer> | AsyncIterable<string> | null
}

/** On every answer: no browser may take it for another type than it says. */
const everywhere = { 'x-content-type-options': 'nosniff' }

/** On answers that belong to a caller or a moment: nobody may keep them. */
export const bareHeaders = { ...everywhere, 'cache-control': 'no-store' }

export const jsonHeaders = { 'content-type': 'application/json', ...bareHeaders }

/** On pages, which are the same for everybody but may change with the next release. */
export function pageHeaders(media = 'application/octet-stream'): Readonly<Record<string, string>> {
  return { 'content-type': media, 'cache-control': 'no-cache', ...everywhere }
}
