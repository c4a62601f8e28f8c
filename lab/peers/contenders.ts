// What the benchmark compares the service with: how each contender is started. README.md says what
// each is; check.ts holds all of them to one contract.
import { fileURLToPath } from 'node:url'

export interface Contender {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** Beside PORT, STORE and TOKEN, which whoever starts it chooses. */
  readonly environment: Readonly<Record<string, string>>
  /** What STORE has to be: the path of a file, or the URL of a database. */
  readonly store: 'sqlite' | 'postgres'
}

const folder = fileURLToPath(new URL('.', import.meta.url))
const bun = fileURLToPath(new URL('../../scripts/bun', import.meta.url))
/**
 * Node as this package pins it: where npm unpacks its program, so that no install script has to put
 * it elsewhere.
 */
export const peerNode = `${folder}../node_modules/node-${process.platform}-${process.arch}/bin/node`
const production = { NODE_ENV: 'production' }

function onNode(
  name: string,
  file: string,
  store: Contender['store'],
  environment = {},
): Contender {
  return {
    name,
    command: peerNode,
    args: [`${folder}${file}`],
    environment: { ...production, ...environment },
    store,
  }
}

function onBun(name: string, file: string): Contender {
  return {
    name,
    command: bun,
    args: [`${folder}${file}`],
    environment: production,
    store: 'sqlite',
  }
}

export const contenders: readonly Contender[] = [
  onNode('Fastify, better-sqlite3', 'fastify-better-sqlite3.js', 'sqlite'),
  onNode('Express, better-sqlite3', 'express-better-sqlite3.js', 'sqlite'),
  onBun('Hono on Bun, bun:sqlite', 'hono-bun-sqlite.js'),
  onBun('Elysia on Bun, bun:sqlite', 'elysia-bun-sqlite.js'),
  onNode('Fastify, pg', 'fastify-pg.js', 'postgres'),
  // Remembers a token for as long as the service does where its store is PostgreSQL.
  onNode('Fastify, pg, tokens remembered', 'fastify-pg.js', 'postgres', { TOKEN_CACHE_MS: '3000' }),
]
