// A real Chromium, for the tests of the reference page and for its pictures.
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core'

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const executablePath = places.find((place) => existsSync(place))

/** Chromium asks its maker for updates and the like unless it is told not to. */
const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  '--disable-quic',
]

export const desktop = {
  viewport: { width: 1280, height: 800 },
} as const satisfies BrowserContextOptions
export const phone = {
  viewport: { width: 390, height: 844 },
  hasTouch: true,
  isMobile: true,
} as const satisfies BrowserContextOptions

/**
 * Whether to go without a browser: only if there is none, and never in CI, where that is a
 * failure.
 */
export function browserIsExcused(): boolean {
  if (executablePath !== undefined || process.env['CI']) return false
  console.warn(
    `SKIPPED: the tests of the reference page need Chromium, and it is at none of ${places.join(', ')}.`,
  )
  return true
}

/** Starts the browser; its caller closes it. */
export function launchBrowser(): Promise<Browser> {
  if (executablePath === undefined)
    throw new Error(`Chromium is at none of ${places.join(', ')}; install it.`)
  return chromium.launch({ executablePath, args, timeout: 20_000 })
}
