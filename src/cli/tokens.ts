// The commands on tokens. They work beside a running server; its store promises how soon it sees
// their effect.

import { issueToken } from '../domain/access.ts'
import { type Token, tokenState } from '../domain/token.ts'
import { printable } from '../log.ts'
import { describeStore } from '../stores/location.ts'
import { commandToPaste } from './help.ts'
import { type Parsed, quoted, UsageProblems } from './settings.ts'
import { withStore } from './stores.ts'
import { tableText, timeText, useText } from './tables.ts'
import type { World } from './world.ts'

export async function tokenIssue(
  { values }: Parsed<'account' | 'label' | 'scopes' | 'expires' | 'store', 'account'>,
  world: World,
): Promise<number> {
  const { account, label, scopes, expires: lifetimeMs, store } = values
  return withStore(store, 'of a request', world, async ({ tokens }) => {
    const { plain, token } = await issueToken(
      tokens,
      { account, label, scopes, lifetimeMs },
      world.clock.wallMs(),
      world.randomBytes,
    )
    const expiry =
      token.expiresAtMs === null ? 'does not expire' : `expires ${timeText(token.expiresAtMs)}`
    world.tell(
      `Token ${token.id} for the account ${printable(account)} (${scopes.join(', ')}; ${expiry}), in ${describeStore(store)}.`,
    )
    world.tell('It is shown only now; keep it safe.')
    world.print(plain.reveal())
    return 0
  })
}

export async function tokenList(
  { values }: Parsed<'account' | 'json' | 'store'>,
  world: World,
): Promise<number> {
  return withStore(values.store, 'of a command', world, async (opened) => {
    const tokens = await opened.tokens.list(values.account)
    const nowMs = world.clock.wallMs()
    if (values.json) {
      const published = tokens.map((token) => ({
        id: token.id,
        account: token.account,
        label: token.label,
        scopes: token.scopes,
        state: tokenState(token, nowMs),
        createdAt: timeText(token.createdAtMs),
        expiresAt: timeText(token.expiresAtMs),
        revokedAt: timeText(token.revokedAtMs),
        lastUsedAt: timeText(token.lastUsedAtMs),
      }))
      world.print(JSON.stringify(published, undefined, 2))
    } else if (tokens.length > 0) world.print(table(tokens, nowMs))
    else {
      const issuing = ['token', 'issue', '--account', values.account ?? 'NAME']
      world.print(
        `There are no such tokens. Issue one with: ${commandToPaste(world, issuing, values.store)}`,
      )
    }
    return 0
  })
}

export async function tokenRevoke(
  { values, positionals }: Parsed<'store'>,
  world: World,
): Promise<number> {
  const [id = ''] = positionals
  const listing = commandToPaste(world, ['token', 'list'], values.store)
  if (id.startsWith('plants_'))
    throw new UsageProblems([
      `that is a token, not the id of one. The ids are shown by: ${listing}`,
    ])
  return withStore(values.store, 'of a request', world, async (opened) => {
    const token = await opened.tokens.revoke(id, world.clock.wallMs())
    if (token === undefined) {
      world.tell(`plants: no token has the id ${quoted(id)}. All are shown by: ${listing}`)
      return 1
    }
    world.tell(`Token ${token.id} of the account ${printable(token.account)} is revoked.`)
    return 0
  })
}

function table(tokens: readonly Token[], nowMs: number): string {
  const head = ['ID', 'ACCOUNT', 'LABEL', 'SCOPES', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED']
  const rows = tokens.map((token) => [
    token.id,
    printable(token.account),
    printable(token.label),
    token.scopes.join(','),
    tokenState(token, nowMs),
    timeText(token.createdAtMs)?.slice(0, 10) ?? '',
    timeText(token.expiresAtMs)?.slice(0, 10) ?? 'never',
    useText(token.lastUsedAtMs),
  ])
  return tableText([head, ...rows])
}
