// The commands on tokens. They work beside a running server, which sees their effect as soon as its store says.
import { type Parsed, UsageProblems } from '../config.ts'
import { issueToken } from '../domain/issueToken.ts'
import type { Store } from '../domain/store.ts'
import type { Token } from '../domain/token.ts'
import { printable } from '../log.ts'
import { openStore, type Patience, type StoreUse } from '../service.ts'
import { describeStore, type StoreLocation } from '../storeLocation.ts'
import type { World } from './world.ts'

export async function tokenIssue(
  { values }: Parsed<'account' | 'label' | 'scopes' | 'expires' | 'store'>,
  world: World,
): Promise<number> {
  // The command requires an account, which the type of its setting, shared with the list, does not say.
  const { account = '', label, scopes, expires: lifetimeMs, store } = values
  return withStore(store, 'create', 'of a request', world, async (opened) => {
    const { plain, token } = await issueToken(opened, { account, label, scopes, lifetimeMs }, world)
    world.tell(`Token ${token.id} for the account ${printable(account)} (${expiry(token)}), in ${describeStore(store)}.`)
    world.tell('It is shown only now; keep it safe.')
    world.print(plain.reveal())
    return 0
  })
}

export async function tokenList({ values }: Parsed<'account' | 'json' | 'store'>, world: World): Promise<number> {
  return withStore(values.store, 'existing', 'of a command', world, async (opened) => {
    const tokens = await opened.listTokens(values.account)
    world.print(
      values.json
        ? JSON.stringify(
            tokens.map((token) => published(token, world.nowMs())),
            undefined,
            2,
          )
        : table(tokens, world.nowMs()),
    )
    return 0
  })
}

export async function tokenRevoke({ values, positionals }: Parsed<'store'>, world: World): Promise<number> {
  const [id = ''] = positionals
  if (id.startsWith('plants_'))
    throw new UsageProblems(['that is a token, not the id of one; "plants token list" shows the ids.'])
  return withStore(values.store, 'existing', 'of a request', world, async (opened) => {
    const token = await opened.revokeToken(id, world.nowMs())
    if (token === undefined) {
      world.tell(`plants: no token has the id ${JSON.stringify(id)}; "plants token list" shows those there are.`)
      return 1
    }
    world.tell(`Token ${token.id} of the account ${printable(token.account)} is revoked.`)
    return 0
  })
}

async function withStore(
  location: StoreLocation,
  use: StoreUse,
  patience: Patience,
  { randomBytes }: World,
  work: (store: Store) => Promise<number>,
): Promise<number> {
  const store = await openStore(location, use, { randomBytes, note: () => {}, patience })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

function published(token: Token, nowMs: number): Record<string, unknown> {
  const { id, account, label, scopes } = token
  return {
    id,
    account,
    label,
    scopes,
    state: stateOf(token, nowMs),
    createdAt: timeText(token.createdAtMs),
    expiresAt: timeText(token.expiresAtMs),
    revokedAt: timeText(token.revokedAtMs),
    lastUsedAt: timeText(token.lastUsedAtMs),
  }
}

function stateOf(token: Token, nowMs: number): 'active' | 'expired' | 'revoked' {
  if (token.revokedAtMs !== null) return 'revoked'
  return token.expiresAtMs !== null && token.expiresAtMs <= nowMs ? 'expired' : 'active'
}

function table(tokens: readonly Token[], nowMs: number): string {
  if (tokens.length === 0) return 'There are no such tokens. Issue one with: bin/plants token issue --account NAME'
  const head = ['ID', 'ACCOUNT', 'LABEL', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED']
  const rows = tokens.map((token) => [
    token.id,
    printable(token.account),
    printable(token.label),
    token.scopes.join(','),
    stateOf(token, nowMs),
    dayOf(token.createdAtMs),
    token.expiresAtMs === null ? 'never' : dayOf(token.expiresAtMs),
    token.lastUsedAtMs === null ? 'never' : `${dayOf(token.lastUsedAtMs)} ${timeText(token.lastUsedAtMs)?.slice(11, 13)}h`,
  ])
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function expiry({ expiresAtMs }: Token): string {
  return expiresAtMs === null ? 'does not expire' : `expires ${timeText(expiresAtMs)}`
}

function timeText(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString()
}

function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}
