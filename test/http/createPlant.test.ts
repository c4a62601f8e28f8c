// POST /plants: what is taken, what is refused and how, and retries with Idempotency-Key.
import { describe, expect, test } from 'bun:test'
import { type TestService, withService } from '../support/service.ts'

const notANumber = 'id must be an integer between -9223372036854775808 and 9223372036854775807.'

function create(
  service: TestService,
  token: string,
  body: string,
  headers: Record<string, string> = {},
) {
  return service.call('POST', '/plants', { token, body, headers })
}

/** Creates with a body and tells the status and the message. */
async function refusal(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<[number, string]> {
  let found: [number, string] = [0, '']
  await withService(async (service) => {
    const token = await service.tokenFor('a')
    const answer = await service.call('POST', '/plants', { token, body, headers })
    found = [answer.status, (answer.json as { message: string }).message]
    expect(answer.json).toEqual({ error: answer.status, message: expect.any(String) })
    expect((await service.call('GET', '/plants', { token })).text).toBe('[]')
  })
  return found
}

describe('POST /plants', () => {
  test('answers 200 with the plant, without its id', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const answer = await create(service, token, '{"id":1,"name":"Monstera","tag":"indoor"}')
      expect(answer.status).toBe(200)
      expect(answer.text).toBe('{"name":"Monstera","tag":"indoor"}')
      expect(answer.headers.get('content-type')).toBe('application/json')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(answer.headers.get('server')).toBeNull()
    }))

  test('leaves out a tag that was not given, and keeps an empty one', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      expect((await create(service, token, '{"id":1,"name":"x"}')).text).toBe('{"name":"x"}')
      expect((await create(service, token, '{"id":2,"name":"","tag":""}')).text).toBe(
        '{"name":"","tag":""}',
      )
      expect((await service.call('GET', '/plants', { token })).text).toBe(
        '[{"name":"x"},{"name":"","tag":""}]',
      )
    }))

  test('keeps name and tag as they are: nothing trimmed, nothing normalised', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const plant = { name: '  A\u030a \u00c5 \ud83c\udf35\u0001\u2028"\\/  ', tag: '\t\r\n' }
      expect((await create(service, token, JSON.stringify({ id: 1, ...plant }))).json).toEqual(
        plant,
      )
      expect((await service.call('GET', '/plants', { token })).json).toEqual([plant])
    }))

  test('ignores unknown members', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const body = '{"id":1,"name":"x","colour":"green","__proto__":{"tag":"t"},"constructor":1}'
      expect((await create(service, token, body)).text).toBe('{"name":"x"}')
      expect((await service.call('GET', '/plants', { token })).text).toBe('[{"name":"x"}]')
    }))

  test('keeps every 64-bit id exactly', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const ids = [
        '9223372036854775807',
        '9223372036854775806',
        '-9223372036854775808',
        '-9223372036854775807',
        '9007199254740993',
        '0',
      ]
      for (const id of ids)
        expect((await create(service, token, `{"id":${id},"name":"${id}"}`)).status).toBe(200)
      expect((await service.call('DELETE', '/plants/9223372036854775807', { token })).status).toBe(
        204,
      )
      expect((await service.call('GET', '/plants', { token })).json).toEqual([
        { name: '-9223372036854775808' },
        { name: '-9223372036854775807' },
        { name: '0' },
        { name: '9007199254740993' },
        { name: '9223372036854775806' },
      ])
    }))

  test.each([
    ['1.0', '1'],
    ['1e2', '100'],
    ['-0', '0'],
    ['0e999999999999999999999', '0'],
    ['1200E-2', '12'],
    ['9223372036854775807.000', '9223372036854775807'],
    ['922337203685477580.7e1', '9223372036854775807'],
    ['-9.223372036854775808e18', '-9223372036854775808'],
  ])('takes the id %s, whose exact value is %s', (written, id) =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      expect((await create(service, token, `{"id":${written},"name":"x"}`)).status).toBe(200)
      expect((await service.call('DELETE', `/plants/${id}`, { token })).status).toBe(204)
    }),
  )

  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    '1e19',
    '1e400',
    '-1e999999999',
    '1.5',
    '1e-1',
    '0.1',
    '9223372036854775807.0000000000000000001',
    '1.00000000000000000000001',
  ])('refuses the id %s and never rounds it', async (id) => {
    expect(await refusal(`{"id":${id},"name":"x"}`)).toEqual([400, notANumber])
  })

  test.each([
    ['', 'The body is empty; send a JSON object.'],
    [' \n', 'The body is empty; send a JSON object.'],
    ['{', 'The body must be valid JSON.'],
    ["{'id':1,'name':'x'}", 'The body must be valid JSON.'],
    ['{"id":1,"name":"x"} x', 'The body must be valid JSON.'],
    ['{"id":1,"name":"x",}', 'The body must be valid JSON.'],
    ['{"id":01,"name":"x"}', 'The body must be valid JSON.'],
    ['{"id":NaN,"name":"x"}', 'The body must be valid JSON.'],
    ['{"id":1,"name":"\t"}', 'The body must be valid JSON.'],
    ['\u{feff}\u{feff}{"id":1,"name":"x"}', 'The body must be valid JSON.'],
    ['[]', 'The body must be a JSON object, not an array.'],
    ['[{"id":1,"name":"x"}]', 'The body must be a JSON object, not an array.'],
    ['null', 'The body must be a JSON object, not null.'],
    ['7', 'The body must be a JSON object, not a number.'],
    ['"x"', 'The body must be a JSON object, not a string.'],
    ['false', 'The body must be a JSON object, not a boolean.'],
    ['{}', 'id is missing.'],
    ['{"name":"x"}', 'id is missing.'],
    ['{"id":1}', 'name is missing.'],
    ['{"id":1,"Name":"x"}', 'name is missing.'],
    ['{"id":"1","name":"x"}', 'id must be a number, not a string.'],
    ['{"id":"","name":"x"}', 'id must be a number, not a string.'],
    ['{"id":true,"name":"x"}', 'id must be a number, not a boolean.'],
    ['{"id":null,"name":"x"}', 'id must be a number, not null.'],
    ['{"id":[1],"name":"x"}', 'id must be a number, not an array.'],
    ['{"id":{"id":1},"name":"x"}', 'id must be a number, not an object.'],
    ['{"id":1,"name":null}', 'name must be a string, not null.'],
    ['{"id":1,"name":7}', 'name must be a string, not a number.'],
    ['{"id":1,"name":["x"]}', 'name must be a string, not an array.'],
    ['{"id":1,"name":{}}', 'name must be a string, not an object.'],
    ['{"id":1,"name":"x","tag":null}', 'tag must be a string, not null.'],
    ['{"id":1,"name":"x","tag":1}', 'tag must be a string, not a number.'],
    ['{"id":1,"name":"x","tag":false}', 'tag must be a string, not a boolean.'],
    ['{"id":1,"name":"a\\u0000b"}', 'name must not contain the character U+0000.'],
    ['{"id":1,"name":"x","tag":"\\u0000"}', 'tag must not contain the character U+0000.'],
    ['{"id":1,"name":"\\ud800"}', 'name must not contain a lone surrogate.'],
    ['{"id":1,"name":"x","tag":"\\udc00\\ud800"}', 'tag must not contain a lone surrogate.'],
    ['{"id":1,"id":1,"name":"x"}', 'The body holds the member "id" more than once in one object.'],
    [
      '{"id":1,"name":"x","n\\u0061me":"x"}',
      'The body holds the member "name" more than once in one object.',
    ],
    [
      '{"id":1,"name":"x","__proto__":1,"__proto__":1}',
      'The body holds the member "__proto__" more than once in one object.',
    ],
    [
      '{"id":1,"name":"x","more":[{"a":{"b":1,"c":2,"b" : 3}}]}',
      'The body holds the member "b" more than once in one object.',
    ],
  ])('refuses the body %#: %s', async (body, message) => {
    expect(await refusal(body)).toEqual([400, message])
  })

  test('refuses endless nesting and endless digits as it does any other body', async () => {
    const tooDeep: [number, string] = [
      400,
      'The body must not be nested more than 500 levels deep.',
    ]
    for (const levels of [501, 6000, 50_000, 500_000])
      expect(await refusal('['.repeat(levels) + ']'.repeat(levels))).toEqual(tooDeep)
    const inMember = (levels: number): string =>
      `{"id":1,"name":"x","more":${'['.repeat(levels)}"]"${']'.repeat(levels)}}`
    expect(await refusal(inMember(500))).toEqual(tooDeep)
    await withService(async (service) => {
      const token = await service.tokenFor('a')
      expect((await create(service, token, inMember(499))).status).toBe(200)
    })
    expect(await refusal(`{"id":${'1'.repeat(500_000)},"name":"x"}`)).toEqual([400, notANumber])
    expect(await refusal(`{"id":0.${'0'.repeat(500_000)}1,"name":"x"}`)).toEqual([400, notANumber])
    expect(await refusal(`{"id":1${'0'.repeat(500_000)}1,"name":"x"}`)).toEqual([400, notANumber])
  })

  test('takes the same name in different objects, and braces inside strings', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const body =
        '{"id":1,"name":"{\\"name\\":[","more":{"id":1,"name":["name","name"]},"others":[{"a":1},{"a":1}]}'
      expect((await create(service, token, body)).json).toEqual({ name: '{"name":[' })
    }))

  test('refuses invalid UTF-8', async () => {
    const bytes = new Uint8Array([
      ...Buffer.from('{"id":1,"name":"'),
      0xc3,
      0x28,
      ...Buffer.from('"}'),
    ])
    expect(await refusal(bytes)).toEqual([400, 'The body must be valid UTF-8.'])
    const surrogate = new Uint8Array([
      ...Buffer.from('{"id":1,"name":"'),
      0xed,
      0xa0,
      0x80,
      ...Buffer.from('"}'),
    ])
    expect(await refusal(surrogate)).toEqual([400, 'The body must be valid UTF-8.'])
  })

  test('tolerates one leading byte order mark', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      expect((await create(service, token, '\u{feff}{"id":1,"name":"\u{feff}x"}')).json).toEqual({
        name: '\u{feff}x',
      })
    }))

  test('refuses an id that is taken and leaves the first plant as it was', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await create(service, token, '{"id":7,"name":"first"}')
      for (const name of ['first', 'second']) {
        const answer = await create(service, token, `{"id":7,"name":"${name}"}`)
        expect(answer.status).toBe(409)
        expect(answer.text).toBe(
          '{"error":409,"message":"id is already taken by a plant of this account."}',
        )
      }
      expect((await service.call('GET', '/plants', { token })).text).toBe('[{"name":"first"}]')
    }))

  test('lets two accounts use one id, and frees an id with its plant', () =>
    withService(async (service) => {
      const [one, two] = [await service.tokenFor('one'), await service.tokenFor('two')]
      expect((await create(service, one, '{"id":7,"name":"of one"}')).status).toBe(200)
      expect((await create(service, two, '{"id":7,"name":"of two"}')).status).toBe(200)
      expect((await service.call('DELETE', '/plants/7', { token: one })).status).toBe(204)
      expect((await create(service, one, '{"id":7,"name":"again"}')).status).toBe(200)
      expect((await service.call('GET', '/plants', { token: one })).text).toBe('[{"name":"again"}]')
      expect((await service.call('GET', '/plants', { token: two })).text).toBe(
        '[{"name":"of two"}]',
      )
    }))

  test('gives one of sixteen racing creators of an id the plant, and the others 409', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const racers = Array.from({ length: 16 }, (_, n) =>
        create(service, token, `{"id":1,"name":"${n}"}`),
      )
      const found = (await Promise.all(racers)).map(({ status }) => status).sort()
      expect(found).toEqual([200, ...Array<number>(15).fill(409)])
    }))
})

describe('the media type of POST /plants', () => {
  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json\t;charset=utf-8',
    'application/json ; Charset=Utf-8',
    'application/json; profile=x',
  ])('takes %s', (type) =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      expect(
        (await create(service, token, '{"id":1,"name":"x"}', { 'Content-Type': type })).status,
      ).toBe(200)
    }),
  )

  test.each([
    'text/plain',
    'application/jsonp',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/x-www-form-urlencoded',
    'application/vnd.api+json',
    'json',
    'text/json',
  ])('refuses %s with 415', (type) =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const answer = await create(service, token, '{"id":1,"name":"x"}', { 'Content-Type': type })
      expect(answer.status).toBe(415)
      expect(answer.json).toEqual({
        error: 415,
        message: 'Content-Type must be application/json, in UTF-8.',
      })
      expect(answer.headers.get('accept')).toBe('application/json')
    }),
  )

  test('refuses an encoded body with 415, and takes identity', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const encoding of ['gzip', 'br', 'identity, gzip', 'nonsense']) {
        const answer = await create(service, token, '{"id":1,"name":"x"}', {
          'Content-Encoding': encoding,
        })
        expect(answer.status).toBe(415)
        expect(answer.json).toEqual({
          error: 415,
          message: 'Content-Encoding must be identity or left out.',
        })
        expect(answer.headers.get('accept-encoding')).toBe('identity')
      }
      expect(
        (await create(service, token, '{"id":1,"name":"x"}', { 'Content-Encoding': 'Identity' }))
          .status,
      ).toBe(200)
    }))
})

describe('the size of POST /plants', () => {
  const bodyOf = (bytes: number): string => `{"id":1,"name":"${'n'.repeat(bytes - 18)}"}`

  test('takes a body of exactly the limit', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const body = bodyOf(1024 * 1024)
      expect(Buffer.byteLength(body)).toBe(1024 * 1024)
      expect((await create(service, token, body)).status).toBe(200)
    }))

  test('refuses one byte more with 413', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      const answer = await create(service, token, bodyOf(1024 * 1024 + 1))
      expect(answer.status).toBe(413)
      expect(answer.json).toEqual({
        error: 413,
        message: 'The body must not exceed 1048576 bytes.',
      })
    }))

  test('counts a chunked body as it comes', () =>
    withService(
      async (service) => {
        const token = await service.tokenFor('a')
        const chunked = (text: string): Promise<Response> =>
          fetch(`${service.url}/plants`, {
            method: 'POST',
            headers: { Authorization: `Bearer ${token}` },
            body: new ReadableStream({
              start(controller) {
                for (const character of text) controller.enqueue(Buffer.from(character))
                controller.close()
              },
            }),
          })
        expect((await chunked(bodyOf(100))).status).toBe(200)
        const answer = await chunked(bodyOf(101))
        expect(answer.status).toBe(413)
        expect(await answer.json()).toEqual({
          error: 413,
          message: 'The body must not exceed 100 bytes.',
        })
      },
      { bodyBytesMax: 100 },
    ))
})

describe('Idempotency-Key', () => {
  const first = '{"id":7,"name":"Monstera","tag":"indoor"}'

  test('makes a repeat get the first answer again, quoted or bare', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const key of ['"k-1"', 'k-1', '"k-1"']) {
        const answer = await create(service, token, first, { 'Idempotency-Key': key })
        expect(answer.status).toBe(200)
        expect(answer.text).toBe('{"name":"Monstera","tag":"indoor"}')
      }
      expect((await service.call('GET', '/plants', { token })).text).toBe(
        '[{"name":"Monstera","tag":"indoor"}]',
      )
    }))

  test('refuses another name or tag under the same key and id with 422', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await create(service, token, first, { 'Idempotency-Key': 'k' })
      for (const body of [
        '{"id":7,"name":"Other","tag":"indoor"}',
        '{"id":7,"name":"Monstera"}',
        '{"id":7,"name":"Monstera","tag":""}',
      ]) {
        const answer = await create(service, token, body, { 'Idempotency-Key': 'k' })
        expect(answer.status).toBe(422)
        expect(answer.json).toMatchObject({
          error: 422,
          message: expect.stringContaining('Idempotency-Key'),
        })
      }
      expect((await service.call('GET', '/plants', { token })).text).toBe(
        '[{"name":"Monstera","tag":"indoor"}]',
      )
    }))

  test('is no help with another key, or none on either side', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await create(service, token, first, { 'Idempotency-Key': 'k' })
      expect((await create(service, token, first, { 'Idempotency-Key': 'other' })).status).toBe(409)
      expect((await create(service, token, first)).status).toBe(409)
      await create(service, token, '{"id":8,"name":"x"}')
      expect(
        (await create(service, token, '{"id":8,"name":"x"}', { 'Idempotency-Key': 'k' })).status,
      ).toBe(409)
    }))

  test('belongs to its id and goes with its plant', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      await create(service, token, first, { 'Idempotency-Key': 'k' })
      expect(
        (await create(service, token, '{"id":8,"name":"x"}', { 'Idempotency-Key': 'k' })).status,
      ).toBe(200)
      await service.call('DELETE', '/plants/7', { token })
      expect(
        (await create(service, token, '{"id":7,"name":"new"}', { 'Idempotency-Key': 'k' })).status,
      ).toBe(200)
    }))

  test('is 1 to 255 visible ASCII characters', () =>
    withService(async (service) => {
      const token = await service.tokenFor('a')
      for (const key of ['', '""', 'a b', 'x'.repeat(256), `"${'x'.repeat(256)}"`, 'ümlaut']) {
        const answer = await create(service, token, first, { 'Idempotency-Key': key })
        expect(answer.status).toBe(400)
        expect(answer.json).toEqual({
          error: 400,
          message:
            'Idempotency-Key must be 1 to 255 visible ASCII characters, bare or in double quotes.',
        })
      }
      expect(
        (await create(service, token, first, { 'Idempotency-Key': `"${'x'.repeat(255)}"` })).status,
      ).toBe(200)
      expect(
        (await create(service, token, first, { 'Idempotency-Key': 'x'.repeat(255) })).status,
      ).toBe(200)
    }))
})
