// The values of a query parameter are those that the URL Standard gives, by the short way and the
// long.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { queryValues } from '../../src/http/request.ts'

const part = fc.oneof(
  fc.constantFrom(
    'limit=1',
    'limit=',
    'limit',
    '=',
    '',
    'after=-7',
    'limit==2',
    'LIMIT=3',
    'limit=%31',
    'limit=a+b',
    'limit=%zz',
    'x=1=2',
  ),
  fc.string({ maxLength: 8 }).map((text) => text.replace(/[#?]/g, '')),
)

test('queryValues agrees with URLSearchParams on any query', () => {
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 5 }),
      fc.constantFrom('limit', 'after', 'x'),
      (parts, name) => {
        const query = parts.join('&')
        expect([...queryValues(query, name)]).toEqual(new URLSearchParams(query).getAll(name))
      },
    ),
    { numRuns: 2000 },
  )
})
