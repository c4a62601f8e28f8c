// Fills an SQLite store with any number of plants in seconds: the plants by one statement, past the
// service, the tokens through the store.
import { createHash } from 'node:crypto'
import { systemClock } from '../src/clock.ts'
import { plainTokenFrom, scopes, type Token } from '../src/domain/token.ts'
import { openStore } from '../src/stores/open.ts'
import { connect } from '../src/stores/sqlite/connection.ts'
import { storeOptions } from '../test/support/stores.ts'
import { seededPlant } from './workloads.ts'

/**
 * Issues a token for each of the accounts `account 000000`, `account 000001`, … in a store, which
 * is made where it is not there.
 */
export async function seedTokens(path: string, accounts: number): Promise<readonly string[]> {
  const store = await openStore(
    { scheme: 'sqlite', path },
    { ...storeOptions, use: 'create', randomBytes },
  )
  const nowMs = Date.now()
  const numbers = Array.from({ length: accounts }, (_, number) => number)
  const tokens = numbers.map((number) => plainTokenFrom(randomBytes(32, `token ${number}`)))
  const record = (number: number): Token => ({
    id: `${number}`,
    account: accountName(number),
    label: '',
    scopes,
    createdAtMs: nowMs,
    expiresAtMs: null,
    revokedAtMs: null,
    // As if it had been used already: its first use in an hour is noted, which is a write.
    lastUsedAtMs: nowMs,
  })
  await Promise.all(tokens.map((token, number) => store.tokens.issue(record(number), token.hash())))
  await store.close()
  return tokens.map((token) => token.reveal())
}

/**
 * Adds the plants with the numbers from `from` to `to` (excluded), so many of them in a row to each
 * account.
 */
export async function seedPlants(
  path: string,
  from: number,
  to: number,
  plantsOfAccount: number,
): Promise<void> {
  const database = await connect(path, systemClock)
  database.exec('pragma synchronous = off')
  const account = `'account ' || printf('%06d', n / ${plantsOfAccount})`
  database.exec(`
    with recursive numbers(n) as (select ${from} union all select n + 1 from numbers where n + 1 < ${to})
    insert into plants select ${account}, n + 1, '${seededPlant.name}', '${seededPlant.tag}', null, null from numbers where n < ${to}`)
  database.close()
}

function accountName(number: number): string {
  return `account ${String(number).padStart(6, '0')}`
}

/** The same bytes for the same name, so that two runs ask the same. */
function randomBytes(count: number, name = 'seed'): Uint8Array {
  return createHash('sha512').update(name).digest().subarray(0, count)
}
