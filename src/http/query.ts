// The values of a query parameter (https://url.spec.whatwg.org/#urlencoded-parsing).

/** All values under a name, in their order. */
export function queryValues(query: string, name: string): readonly string[] {
  // URLSearchParams costs as much as reading a page from the store; without escapes it is not needed.
  if (/[%+]/.test(query)) return new URLSearchParams(query).getAll(name)
  const values: string[] = []
  for (const part of query.split('&')) {
    const equals = part.indexOf('=')
    if ((equals === -1 ? part : part.slice(0, equals)) === name) values.push(equals === -1 ? '' : part.slice(equals + 1))
  }
  return values
}
