// Fills an SQLite store, which is made if it is not there, with any number of tokens and plants.
import { createHash } from 'node:crypto'
import { type PlainToken, plainTokenFrom, scopes } from '../src/domain/token.ts'
import { openStore } from '../src/stores/open.ts'
import { storeOptions } from '../test/support/stores.ts'
import { seededPlant } from './workloads.ts'

/** So many writes wait at once. */
const writesAtOnce = 5000

/**
 * Makes accounts with a token each, and gives the tokens. The first accounts get `plantsOfAccount`
 * plants each, until there are `plants`; ids ascend from 1, over all accounts.
 */
export async function seedStore(
  path: string,
  accounts: number,
  plants: number,
  plantsOfAccount: number,
): Promise<readonly string[]> {
  const store = await openStore({ scheme: 'sqlite', path }, { ...storeOptions, use: 'create' })
  const nowMs = Date.now()
  await inTurns(accounts, (number) =>
    store.tokens.issue(
      {
        id: `${number}`,
        account: accountName(number),
        label: '',
        scopes,
        createdAtMs: nowMs,
        expiresAtMs: null,
        revokedAtMs: null,
        // As if it had been used already: its first use in an hour is noted, which is a write.
        lastUsedAtMs: nowMs,
      },
      tokenOf(number).hash(),
    ),
  )
  await inTurns(plants, (number) =>
    store.plants.create(accountName(Math.floor(number / plantsOfAccount)), {
      id: BigInt(number + 1),
      ...seededPlant,
      idempotencyKey: null,
    }),
  )
  await store.close()
  return Array.from({ length: accounts }, (_, number) => tokenOf(number).reveal())
}

/** Does something for each number from 0 to `count`, for some of them at a time. */
async function inTurns(count: number, work: (number: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += writesAtOnce)
    await Promise.all(
      Array.from({ length: Math.min(writesAtOnce, count - from) }, (_, index) =>
        work(from + index),
      ),
    )
}

/** The same one in each run, so that two runs ask the same. */
function tokenOf(number: number): PlainToken {
  return plainTokenFrom(createHash('sha256').update(`token ${number}`).digest())
}

function accountName(number: number): string {
  return `account ${String(number).padStart(6, '0')}`
}
