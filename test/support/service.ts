// A real service for a test: a real store of its own, real HTTP on a free port.
import { afterAll } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { issueToken } from '../../src/domain/access.ts'
import { type Scope, scopes } from '../../src/domain/token.ts'
import { defaultLimits, type Limits } from '../../src/http/context.ts'
import type { Log } from '../../src/log.ts'
import { type Service, type ServiceOptions, startService } from '../../src/service.ts'
import type { StoreLocation } from '../../src/stores/location.ts'
import { RunningClock } from './clock.ts'
import { temporaryStore } from './stores.ts'

export interface TestService extends Service {
  /** What was logged, a line each. */
  readonly logged: string[]
  readonly clock: RunningClock
  readonly tokenFor: (
    account: string,
    options?: { scopes?: readonly Scope[]; lifetimeMs?: number },
  ) => Promise<string>
  readonly call: (method: string, target: string, options?: CallOptions) => Promise<Answer>
  /** Where its store is, for a second door to it. */
  readonly location: StoreLocation
}

export interface CallOptions {
  readonly token?: string | undefined
  readonly body?: string | Uint8Array<ArrayBuffer> | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON.parse gives it. */
  readonly json: unknown
}

/** Starts a service and stops it when `use` has returned or thrown. */
export async function withService(
  use: (service: TestService) => Promise<void>,
  limits: Partial<Limits> = {},
  options: Partial<ServiceOptions> = {},
): Promise<void> {
  const store = await temporaryStore()
  const service = await startTestService(store.location, limits, options)
  try {
    await use(service)
  } finally {
    await service.stop()
    await store.dispose()
  }
}

/**
 * Makes an operation of a real store, or of a part of it, fail. The function that it gives makes it
 * work again.
 */
export function breakDown<Part extends object>(
  part: Part,
  operation: keyof Part,
  error: Error,
): () => void {
  const working = part[operation]
  const set = (value: unknown): void =>
    void Object.defineProperty(part, operation, { configurable: true, value })
  set(() => {
    throw error
  })
  return () => set(working)
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'plants-test-'))
}

/** Makes folders, which are removed after the last test of the file that asked for them. */
export function folderMaker(): () => string {
  const folders: string[] = []
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true })
  })
  return () => {
    const folder = temporaryFolder()
    folders.push(folder)
    return folder
  }
}

export async function startTestService(
  store: StoreLocation,
  limits: Partial<Limits> = {},
  options: Partial<ServiceOptions> = {},
): Promise<TestService> {
  const clock = new RunningClock()
  const logged: string[] = []
  const service = await startService({
    host: '127.0.0.1',
    port: 0,
    store,
    log: memoryLog(logged),
    clock,
    randomBytes,
    limits: { ...defaultLimits, ...limits },
    ...options,
  })
  return {
    ...service,
    logged,
    clock,
    location: store,
    tokenFor: async (account, options = {}) => {
      const request = {
        account,
        label: '',
        scopes: options.scopes ?? scopes,
        lifetimeMs: options.lifetimeMs ?? null,
      }
      const issued = await issueToken(service.store.tokens, request, clock.wallMs(), randomBytes)
      return issued.plain.reveal()
    },
    call: (method, target, options) => call(service.url, method, target, options),
  }
}

/**
 * One request over real HTTP. A body is sent as application/json unless the headers say otherwise.
 */
export async function call(
  url: string,
  method: string,
  target: string,
  options: CallOptions = {},
): Promise<Answer> {
  const headers = new Headers(options.headers)
  if (options.token !== undefined) headers.set('Authorization', `Bearer ${options.token}`)
  if (options.body !== undefined && !headers.has('Content-Type'))
    headers.set('Content-Type', 'application/json')
  const response = await fetch(url + target, {
    method,
    headers,
    redirect: 'manual',
    ...(options.body === undefined ? {} : { body: options.body }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    get json() {
      return JSON.parse(text)
    },
  }
}

function memoryLog(lines: string[]): Log {
  const add = (kind: string, content: unknown): void =>
    void lines.push(`${kind} ${Bun.inspect(content)}`)
  return {
    request: (entry, status, ending) => add('request', { ...entry, status, ...ending }),
    failure: (message, details) => add('failure', { message, ...details }),
    warn: (message, cause) => add('warn', { message, cause }),
    note: (message) => add('note', message),
    flush: async () => {},
  }
}
