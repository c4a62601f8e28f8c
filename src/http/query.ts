// The values of a query parameter (https://url.spec.whatwg.org/#urlencoded-parsing).

/** All values under a name, in their order. */
export function queryValues(query: string, name: string): readonly string[] {
  // URLSearchParams costs as much as reading a page from the store; without escapes it is not
  // needed.
  if (query.includes('%') || query.includes('+')) return new URLSearchParams(query).getAll(name)
  const values: string[] = []
  for (let start = 0; start < query.length; ) {
    const next = query.indexOf('&', start)
    const end = next === -1 ? query.length : next
    if (query.startsWith(name, start)) {
      const nameEnd = start + name.length
      if (nameEnd === end) values.push('')
      else if (query.charAt(nameEnd) === '=') values.push(query.slice(nameEnd + 1, end))
    }
    start = end + 1
  }
  return values
}
