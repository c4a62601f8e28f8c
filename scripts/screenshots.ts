// Takes the pictures of the reference that the documentation shows. The command:
// scripts/bun scripts/screenshots.ts
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { desktop, launchBrowser, phone } from '../test/support/browser.ts'
import { withService } from '../test/support/service.ts'

const folder = fileURLToPath(new URL('../docs/images/', import.meta.url))

/** What the pictures show as the address of the service, which really listens on a free port. */
const shownOrigin = 'http://localhost:8080'

const pictures: Readonly<Record<string, BrowserContextOptions>> = {
  'reference-light.png': { ...desktop, colorScheme: 'light' },
  'reference-dark.png': { ...desktop, colorScheme: 'dark' },
  'reference-phone.png': { ...phone, colorScheme: 'light' },
}

async function take(
  browser: Browser,
  url: string,
  name: string,
  options: BrowserContextOptions,
): Promise<void> {
  const context = await browser.newContext({ ...options, deviceScaleFactor: 1 })
  const page = await context.newPage()
  await page.route(`${shownOrigin}/**`, async (route) => {
    const { pathname } = new URL(route.request().url())
    await route.fulfill({ response: await route.fetch({ url: url + pathname }) })
  })
  await page.goto(`${shownOrigin}/docs`)
  await page.getByRole('heading', { name: 'Create a plant' }).waitFor()
  await page.waitForLoadState('networkidle')
  await page.screenshot({ path: folder + name, animations: 'disabled' })
  await context.close()
  console.log(`docs/images/${name}`)
}

mkdirSync(folder, { recursive: true })
const browser = await launchBrowser()
try {
  await withService(async ({ url }) => {
    for (const [name, options] of Object.entries(pictures)) await take(browser, url, name, options)
  })
} finally {
  await browser.close()
}
