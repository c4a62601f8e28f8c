// Starts the interactive reference (Scalar) on the served document. It runs before Scalar's own
// script, because two things must be in place when that one is read.

// Scalar's validation library tries whether it may compile code; the page's security policy says no.
globalThis.__zod_globalConfig = { jitless: true }

if (typeof JSON.rawJSON === 'function') keepIntegersExact()

addEventListener('DOMContentLoaded', () => {
  globalThis.Scalar.createApiReference('#reference', {
    // Relative to the page: there may be a prefix before the path.
    url: 'openapi.json',
    servers: [{ url: new URL('.', location.href).href.replace(/\/$/, '') }],
    // The one scheme there is: without this, a reader has to choose it before the field for the token appears.
    authentication: { preferredSecurityScheme: 'bearer' },
    defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
    defaultRequestBodyView: 'raw',
    documentDownloadType: 'direct',
    // Nothing from outside and nothing to outside: no fonts, no telemetry, no assistants, no editor.
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: 'never',
    hideClientButton: true,
    // A token that was typed in lives as long as the page.
    persistAuth: false,
    // The default caption is cut off at a phone's width.
    localization: { translations: { apiClient: { authSelector: { selectedType: '{type}' } } } },
    customCss: `
      .darklight-reference a[href="https://www.scalar.com"] { display: none; }
      @media (max-width: 767px) { [role="dialog"] .scalar-sidebar-toggle { display: none; } }
    `,
  })
})

/**
 * Scalar reads and writes JSON as JavaScript numbers, which round a 64-bit id. Here such integers
 * become bigints, which are written with all their digits; bounds, which Scalar can only show as
 * numbers, move into the description. Browsers without JSON.rawJSON keep the rounding.
 */
function keepIntegersExact() {
  const parse = JSON.parse
  const bounds = {
    minimum: 'at least',
    exclusiveMinimum: 'above',
    maximum: 'at most',
    exclusiveMaximum: 'below',
  }

  function describeBounds(schema) {
    for (const [name, words] of Object.entries(bounds)) {
      if (typeof schema[name] !== 'bigint') continue
      schema.description =
        `${schema.description ?? ''} Must be ${words} \`${schema[name]}\`.`.trim()
      delete schema[name]
    }
    return schema
  }

  // Scalar sends the example of an optional parameter along unless it is marked: a first try would list
  // only what follows id 7, and all that is created from the page would share one idempotency key.
  function leaveOut(parameter) {
    parameter.examples = { example: { value: parameter.example, 'x-disabled': true } }
    delete parameter.example
  }

  function exact(_name, value, { source }) {
    if (typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source))
      return BigInt(source)
    if (['query', 'header'].includes(value?.in) && 'example' in value) leaveOut(value)
    return value?.type === 'integer' ? describeBounds(value) : value
  }

  JSON.parse = (text, reviver) => parse(text, reviver ?? exact)
  BigInt.prototype.toJSON = function () {
    return JSON.rawJSON(String(this))
  }
}
