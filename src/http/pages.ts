// The pages for people: the OpenAPI document and the interactive reference that reads it.
// Everything comes from this service; the security policy lets the browser ask nobody else. Each
// page is read once and packed once for each encoding that a browser asks for. All answers share
// the result.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { openapiText } from '../contract/openapi.ts'
import { type InputOf, notModifiedStatus, operations } from '../contract/operations.ts'
import { inPieces, longAnswerBytes, pageHeaders, type Reply, withHeaders } from './reply.ts'

type PageId = 'openapi' | 'docs' | 'docsStart' | 'docsScript'
type PageRequest = InputOf<(typeof operations)[PageId]>

export type Pages = Readonly<Record<PageId, (request: PageRequest) => Promise<Reply>>>

/**
 * Scalar sets styles on elements, so inline styles must be allowed; scripts must come from here.
 */
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

/** Scalar's package. Only its build for browsers is served. */
const scalarPackage = new URL(
  '../../node_modules/@scalar/api-reference/package.json',
  import.meta.url,
)
const scalarScript = new URL('./dist/browser/standalone.js', scalarPackage)

/** `publicUrl` goes before the paths; the links of the page are relative. */
export function loadPages(publicUrl: string): Pages {
  const { version } = JSON.parse(readFileSync(scalarPackage, 'utf8')) as {
    readonly version: string
  }
  const html = asset('page.html').replace(
    operations.docsScript.path.slice(1),
    (path) => `${path}?v=${version}`,
  )
  return {
    openapi: fixed('openapi', openapiText(publicUrl || undefined)),
    docs: fixed('docs', html, { 'content-security-policy': securityPolicy }),
    docsStart: fixed('docsStart', asset('start.js')),
    // Large, so it is read only when a browser asks for it.
    docsScript: page(
      'docsScript',
      version,
      async () => new Uint8Array(await readFile(scalarScript)),
    ),
  }
}

function asset(name: string): string {
  return readFileSync(new URL(`./reference/${name}`, import.meta.url), 'utf8')
}

function fixed(
  id: PageId,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Pages[PageId] {
  return page(
    id,
    hash('sha256', text).slice(0, 16),
    async () => new TextEncoder().encode(text),
    headers,
  )
}

/** `version` changes whenever the content does. */
function page(
  id: PageId,
  version: string,
  read: () => Promise<Bytes>,
  more: Readonly<Record<string, string>> = {},
): Pages[PageId] {
  const { success } = operations[id]
  // Weak, because the same page goes out in several encodings.
  const etag = `W/"${version}"`
  const headers = pageHeaders({
    'content-type': success.media ?? '',
    etag,
    vary: 'accept-encoding',
    'cache-control': 'no-cache',
    ...more,
  })
  const versionedHeaders = withHeaders(headers, {
    'cache-control': 'public, max-age=31536000, immutable',
  })
  const packed = shared(read)
  return async (request) => {
    const own = request.version === version ? versionedHeaders : headers
    if (isKnown(request.ifNoneMatch, etag))
      return { status: notModifiedStatus, headers: own, body: null }
    const encoding = encodingFor(request.acceptEncoding ?? '')
    const bytes = await packed(encoding)
    return {
      status: success.status,
      headers: encoding === 'identity' ? own : withHeaders(own, { 'content-encoding': encoding }),
      body: bytes.length <= longAnswerBytes ? bytes : inPieces(bytes),
    }
  }
}

type Bytes = Uint8Array<ArrayBuffer>
type Encoding = 'br' | 'gzip' | 'identity'

const packers: Readonly<
  Record<Exclude<Encoding, 'identity'>, (bytes: Bytes) => Promise<Uint8Array>>
> = {
  // Its best quality takes a hundred times as long, for a tenth less.
  br: (bytes) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: (bytes) => promisify(gzip)(bytes),
}

/** The bytes of a page in an encoding, made at the first request and kept for all later ones. */
function shared(read: () => Promise<Bytes>): (encoding: Encoding) => Promise<Bytes> {
  const made = new Map<Encoding, Promise<Bytes>>()
  const make = async (encoding: Encoding): Promise<Bytes> =>
    encoding === 'identity' ? await read() : new Uint8Array(await packers[encoding](await read()))
  return (encoding) => {
    const known = made.get(encoding)
    if (known !== undefined) return known
    const making = make(encoding)
    made.set(encoding, making)
    // A read that failed is tried again by the next request.
    making.catch(() => made.delete(encoding))
    return making
  }
}

/**
 * The encoding that a browser takes (RFC 9110, section 12.5.3): the smallest of ours that it does
 * not refuse.
 */
function encodingFor(accepted: string): Encoding {
  const offered = accepted.toLowerCase().split(',')
  const takes = (name: string): boolean =>
    offered.some((offer) => {
      const [token = '', ...parameters] = offer.split(';').map((part) => part.trim())
      return token === name && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
    })
  if (takes('br')) return 'br'
  return takes('gzip') ? 'gzip' : 'identity'
}

/** Whether an `If-None-Match` (RFC 9110, section 13.1.2) names this page as it is now. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  return (
    ifNoneMatch
      ?.split(',')
      .some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === etag.slice(2)) ??
    false
  )
}
