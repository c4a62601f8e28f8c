// The commands on tokens. They work beside a running server; its store promises how soon it sees
// their effect.

import { issueToken, type TokenRequest } from '../domain/access.ts'
import type { Tokens } from '../domain/store.ts'
import { type Token, tokenState } from '../domain/token.ts'
import { printable } from '../log.ts'
import { Refused } from '../refused.ts'
import { describeStore, type StoreLocation } from '../stores/location.ts'
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
    await issueAndPrint(tokens, { account, label, scopes, lifetimeMs }, store, world)
    return 0
  })
}

async function issueAndPrint(
  tokens: Tokens,
  request: TokenRequest,
  location: StoreLocation,
  world: World,
): Promise<void> {
  const { plain, token } = await issueToken(
    tokens,
    request,
    world.clock.wallMs(),
    world.randomBytes,
  )
  const expiry =
    token.expiresAtMs === null ? 'does not expire' : `expires ${timeText(token.expiresAtMs)}`
  world.tell(
    `Token ${token.id} for the account ${printable(token.account)} (${token.scopes.join(', ')}; ${expiry}), in ${describeStore(location)}.`,
  )
  world.tell('It is shown only now; keep it safe.')
  try {
    world.print(plain.reveal())
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    const revoking = commandToPaste(world, ['token', 'revoke', token.id], location)
    error.message += ` Nobody has seen token ${token.id}; revoke it with: ${revoking}`
    throw error
  }
}

/** The former token is revoked last, so that there is one that works whatever fails. */
export async function tokenRotate(
  { values: { store }, positionals: [id = ''] }: Parsed<'store'>,
  world: World,
): Promise<number> {
  requireTokenId(id, store, world)
  return withStore(store, 'of a request', world, async ({ tokens }) => {
    const former = (await tokens.list()).find((token) => token.id === id)
    if (former === undefined) return noSuchToken(id, store, world)
    const state = tokenState(former, world.clock.wallMs())
    if (state !== 'active')
      throw new Refused(
        `Token ${id} is ${state} already. Issue a new one with: ${commandToPaste(world, ['token', 'issue', '--account', former.account], store)}`,
      )
    const { account, label, scopes, createdAtMs, expiresAtMs } = former
    const lifetimeMs = expiresAtMs === null ? null : expiresAtMs - createdAtMs
    await issueAndPrint(tokens, { account, label, scopes, lifetimeMs }, store, world)
    await tokens.revoke(id, world.clock.wallMs())
    world.tell(`Token ${id} is revoked.`)
    return 0
  })
}

export async function tokenList(
  { values }: Parsed<'account' | 'active' | 'json' | 'store'>,
  world: World,
): Promise<number> {
  return withStore(values.store, 'of a command', world, async (opened) => {
    const nowMs = world.clock.wallMs()
    const tokens = (await opened.tokens.list(values.account)).filter(
      (token) => !values.active || tokenState(token, nowMs) === 'active',
    )
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
  { values: { store }, positionals: [id = ''] }: Parsed<'store'>,
  world: World,
): Promise<number> {
  requireTokenId(id, store, world)
  return withStore(store, 'of a request', world, async ({ tokens }) => {
    const token = await tokens.revoke(id, world.clock.wallMs())
    if (token === undefined) return noSuchToken(id, store, world)
    world.tell(`Token ${token.id} of the account ${printable(token.account)} is revoked.`)
    return 0
  })
}

/** Throws UsageProblems if a token was given in the place of its id. */
function requireTokenId(id: string, store: StoreLocation, world: World): void {
  if (!id.startsWith('plants_')) return
  const listing = commandToPaste(world, ['token', 'list'], store)
  throw new UsageProblems([`that is a token, not the id of one. The ids are shown by: ${listing}`])
}

function noSuchToken(id: string, store: StoreLocation, world: World): number {
  const listing = commandToPaste(world, ['token', 'list'], store)
  world.tell(`plants: no token has the id ${quoted(id)}. All are shown by: ${listing}`)
  return 1
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
