// The interactive reference in a real browser, as its readers meet it.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser, BrowserContextOptions, Locator, Page, Request } from 'playwright-core'
import { browserIsExcused, desktop, launchBrowser, phone } from '../support/browser.ts'
import { type TestService, withService } from '../support/service.ts'

const largestId = '9223372036854775807'

setDefaultTimeout(30_000)

test('/docs lets the browser run and ask nothing but what this service serves', () =>
  withService(async (service) => {
    const answer = await service.call('GET', '/docs')
    const policy = answer.headers.get('content-security-policy')
    expect(answer.status).toBe(200)
    expect(policy).toBe(
      "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    expect(policy).not.toContain('unsafe-eval')
    expect(policy).not.toMatch(/https?:|\*/)
  }))

describe.skipIf(browserIsExcused())('the reference in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  /**
   * Opens the reference of a service of its own; the browser must have nothing to complain about.
   */
  function visit(
    options: BrowserContextOptions,
    use: (page: Page, service: TestService) => Promise<void>,
  ): Promise<void> {
    return withService(async (service) => {
      const context = await browser.newContext(options)
      try {
        const page = await context.newPage()
        page.setDefaultTimeout(15_000)
        const complaints = await gatherComplaints(page, service.url)
        await page.goto(`${service.url}/docs`)
        await page.getByRole('heading', { name: 'Create a plant' }).waitFor()
        await use(page, service)
        // Whatever the page reported before this question arrives before its answer.
        await page.evaluate('0')
        expect(complaints).toEqual([])
      } finally {
        await context.close()
      }
    })
  }

  test.each(['light', 'dark'] as const)(
    'opens without a complaint, in %s if the reader prefers that',
    (colorScheme) =>
      visit({ ...desktop, colorScheme }, async (page) => {
        await page.waitForLoadState('networkidle')
        expect(await page.evaluate<string[]>('[...document.body.classList]')).toContain(
          `${colorScheme}-mode`,
        )
      }),
  )

  test('creates, lists and deletes the plant with the largest id, sending only what the reader asked for', () =>
    visit(desktop, async (page, service) => {
      const token = await service.tokenFor('reader')
      const listed = async (): Promise<string> =>
        (await service.call('GET', '/plants', { token })).text
      const sent = gatherRequests(page, `${service.url}/plants`)
      await page.getByRole('textbox', { name: 'Bearer Token' }).fill(token)

      await createFromPage(page, `{"id": ${largestId}, "name": "Typed in the page"}`)
      expect(await listed()).toBe('[{"name":"Typed in the page"}]')
      expect(await listFromPage(page)).toContain('"Typed in the page"')
      await deleteFromPage(page, largestId)
      expect(await listed()).toBe('[]')

      expect(sent.map(requestLine)).toEqual([
        'POST /plants',
        'GET /plants',
        `DELETE /plants/${largestId}`,
      ])
      expect(sent[0]?.headers()).not.toHaveProperty('idempotency-key')
      expect(
        await page.evaluate<string>('JSON.stringify([localStorage, sessionStorage])'),
      ).not.toContain(token)
    }))

  test('works below a path of a proxy that strips it', () =>
    withService(async (service) => {
      const proxy = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        fetch: (request) => {
          const { pathname, search } = new URL(request.url)
          return pathname.startsWith('/garden/')
            ? fetch(new Request(service.url + pathname.slice('/garden'.length) + search, request), {
                decompress: false,
              })
            : new Response('', { status: 404 })
        },
      })
      const page = await browser.newPage(desktop)
      page.setDefaultTimeout(15_000)
      const origin = `http://127.0.0.1:${proxy.port}`
      const complaints = await gatherComplaints(page, origin)
      await page.goto(`${origin}/garden/docs`)
      const token = await service.tokenFor('reader')
      await page.getByRole('textbox', { name: 'Bearer Token' }).fill(token)
      const sent = gatherRequests(page, `${origin}/garden/plants`)
      await createFromPage(page, '{"id": 7, "name": "Below a path"}')
      expect(await listFromPage(page)).toContain('"Below a path"')
      expect(sent.map(requestLine)).toEqual(['POST /garden/plants', 'GET /garden/plants'])
      expect(complaints).toEqual([])
      await page.close()
      await proxy.stop(true)
    }))

  test('shows the bounds of an id with all their digits', () =>
    visit(desktop, async (page) => {
      await readEverything(page)
      const text = await page.locator('body').textContent()
      const bounds = [...(text ?? '').matchAll(/-?922337\d*/g)].map(([bound]) => bound)
      const both = ['-9223372036854775808', '9223372036854775807']
      // In the body of POST, in the path of DELETE and among the models.
      expect(bounds).toEqual([...both, ...both, ...both])
      expect(text).not.toMatch(/9\.22\d*e/i)
    }))

  test('fits a phone: the token, the operations and the form to try them', () =>
    visit(phone, async (page) => {
      expect(await widthOf(page)).toBeLessThanOrEqual(phone.viewport.width)
      const token = page.getByRole('textbox', { name: 'Bearer Token' })
      await token.scrollIntoViewIfNeeded()
      expectAcrossPhone(await token.boundingBox())

      await page.getByRole('button', { name: 'Open Menu' }).tap()
      await page.getByRole('link', { name: 'Delete a plant' }).tap()
      await page.getByRole('button', { name: 'Test Request (delete /plants/{id})' }).tap()
      expectAcrossPhone(await sendButton(clientOf(page)).boundingBox())
      expect(await widthOf(page)).toBeLessThanOrEqual(phone.viewport.width)
    }))
})

/** Everything that must not happen while a page is open, as it happens. */
async function gatherComplaints(page: Page, origin: string): Promise<string[]> {
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`))
  page.context().on('request', (request) => {
    const url = new URL(request.url())
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== origin)
      complaints.push(`asked elsewhere: ${url}`)
  })
  // A forbidden eval that is caught never reaches the console, but this event tells of it.
  await page.exposeFunction('complain', (violation: string) =>
    complaints.push(`forbidden: ${violation}`),
  )
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', (event) => complain(event.violatedDirective + ' ' + event.blockedURI))",
  )
  return complaints
}

function gatherRequests(page: Page, prefix: string): Request[] {
  const requests: Request[] = []
  page.on('request', (request) => {
    if (request.url().startsWith(prefix)) requests.push(request)
  })
  return requests
}

function requestLine(request: Request): string {
  const { pathname, search } = new URL(request.url())
  return `${request.method()} ${pathname}${search}`
}

async function createFromPage(page: Page, body: string): Promise<void> {
  const client = await openClient(page, 'Create a plant', 'post /plants')
  await client.getByRole('region', { name: 'Request Body' }).getByRole('textbox').click()
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.insertText(body)
  await send(client, '200 OK')
  await closeClient(client)
}

async function listFromPage(page: Page): Promise<string | null> {
  const client = await openClient(page, 'List plants', 'get /plants')
  await send(client, '200 OK')
  const shown = await responseOf(client).getByRole('textbox').textContent()
  await closeClient(client)
  return shown
}

async function deleteFromPage(page: Page, id: string): Promise<void> {
  const client = await openClient(page, 'Delete a plant', 'delete /plants/{id}')
  await client
    .getByRole('row', { name: /^Include id / })
    .getByRole('combobox', { name: 'Value' })
    .fill(id)
  await send(client, '204 No Content')
  await closeClient(client)
}

/**
 * Goes to an operation, because one that was never in sight is not there yet, and opens the form
 * that tries it.
 */
async function openClient(page: Page, title: string, route: string): Promise<Locator> {
  await sidebar(page).getByRole('link', { name: title }).click()
  await page.getByRole('button', { name: `Test Request (${route})` }).click()
  return clientOf(page)
}

async function send(client: Locator, expectedStatus: string): Promise<void> {
  await sendButton(client).click()
  await responseOf(client).getByRole('link', { name: expectedStatus }).waitFor()
}

async function closeClient(client: Locator): Promise<void> {
  await client.getByRole('button', { name: 'Close Client' }).click()
  await client.waitFor({ state: 'hidden' })
}

function clientOf(page: Page): Locator {
  return page.getByRole('dialog', { name: 'API Client' })
}

function sendButton(client: Locator): Locator {
  return client.getByRole('button', { name: /^Send \w+ request to / })
}

function responseOf(client: Locator): Locator {
  return client.getByRole('region', { name: 'Response', exact: true })
}

function sidebar(page: Page): Locator {
  return page.getByRole('complementary')
}

/**
 * Opens every group of the sidebar and goes to every section, which is what makes the page show it.
 */
async function readEverything(page: Page): Promise<void> {
  const closed = sidebar(page).getByRole('button', { name: /^Open Group/ })
  while ((await closed.count()) > 0) await closed.first().click()
  for (const link of await sidebar(page).locator('a[href^="#"]').all()) await link.click()
  await page.getByRole('region', { name: 'NewPlant' }).getByText('Identification number').waitFor()
}

function widthOf(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth')
}

function expectAcrossPhone(box: { x: number; width: number } | null): void {
  expect(box?.x).toBeGreaterThanOrEqual(0)
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(phone.viewport.width)
}
