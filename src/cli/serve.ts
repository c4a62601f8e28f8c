// The command "serve", from its settings to a clean end.

import type { Clock } from '../clock.ts'
import { issueFirstToken } from '../domain/access.ts'
import type { Store } from '../domain/store.ts'
import { scopes } from '../domain/token.ts'
import { type Log, openLog } from '../log.ts'
import { type Service, startService } from '../service.ts'
import { describeStore, type StoreLocation } from '../stores/location.ts'
import { forOperator } from '../stores/open.ts'
import { commandToPaste, quotedForShell } from './help.ts'
import type { Parsed } from './settings.ts'
import type { World } from './world.ts'

/** How long a stop waits for requests that are under way. */
const stopMs = 10_000

/**
 * How long a stop waits for a start that is under way. That is enough, because nothing is
 * acknowledged before the start has ended.
 */
const startEndMs = 1000

/**
 * Signals this close together count as one: Ctrl-C reaches the service twice, from the terminal and
 * from npm.
 */
const sameSignalMs = 200

export async function serve(
  {
    values,
  }: Parsed<
    'host' | 'port' | 'metrics-port' | 'store' | 'trust-proxy' | 'public-url' | 'first-token'
  >,
  world: World,
): Promise<number> {
  const { host, port, 'metrics-port': metricsPort, store } = values
  const { 'trust-proxy': trustedProxies, 'public-url': publicUrl } = values
  const { clock, randomBytes } = world
  const log = openLog({ descriptor: world.errorDescriptor, terminal: world.errorIsTerminal }, clock)
  let service: Service | undefined
  const force = async (): Promise<void> => {
    const count = service?.underWay() ?? 0
    log.note(`stopped by force: ${count} ${count === 1 ? 'request was' : 'requests were'} cut`)
    await log.flush()
    world.exit(1)
  }
  try {
    // Signals are heard before the start. Otherwise one could leave half a store on the disk.
    const stop = stopRequest(world, force)
    const starting = startService({
      host,
      port,
      metricsPort,
      store,
      trustedProxies,
      publicUrl,
      log,
      clock,
      randomBytes,
    })
    service = await unlessStopped(starting, stop, log, clock)
    if (service === undefined) return 0
    log.note(`the store is ${describeStore(store)}`)
    if (service.metricsUrl !== undefined) log.note(`metrics are at ${service.metricsUrl}`)
    const opened = forOperator(service.store, store)
    const welcome = values['first-token']
      ? await firstToken(opened, service.url, store, world)
      : undefined
    if (welcome === undefined && !(await opened.tokens.any())) {
      const issuing = commandToPaste(world, ['token', 'issue', '--account', 'NAME'], store)
      log.note(`the store holds no token; issue one with: ${issuing}`)
    }
    await log.flush()
    if (welcome !== undefined) world.print(welcome)
    world.print(`plants: listening on ${service.url}`)
    await stop.coming
    log.note('stopping: no new connections; a second signal ends it at once')
    const callOff = clock.after(stopMs, force)
    await service.stop()
    callOff()
    log.note('stopped')
    return 0
  } finally {
    await log.flush()
  }
}

interface StopRequest {
  readonly came: () => boolean
  readonly coming: Promise<void>
}

/**
 * Hears requests to stop. A second one calls `force`, and a third one ends the process as it is.
 */
function stopRequest(world: World, force: () => Promise<void>): StopRequest {
  const { promise: coming, resolve } = Promise.withResolvers<void>()
  let requests = 0
  let lastMs = Number.NEGATIVE_INFINITY
  world.onStopRequest(() => {
    const nowMs = world.clock.monotonicMs()
    if (nowMs - lastMs <= sameSignalMs) return
    lastMs = nowMs
    requests += 1
    if (requests === 1) resolve()
    else if (requests === 2) void force()
    else world.exit(1)
  })
  return { came: () => requests > 0, coming }
}

/**
 * Resolves to the service, or to undefined if a request to stop came first; the service is then
 * stopped.
 */
async function unlessStopped(
  starting: Promise<Service>,
  stop: StopRequest,
  log: Log,
  clock: Clock,
): Promise<Service | undefined> {
  const settled = starting.then(
    (service) => ({ service }),
    (error: unknown) => ({ error }),
  )
  const patience = stop.coming.then(() => clock.sleep(startEndMs))
  const outcome = await Promise.race([settled, patience])
  // A signal that came while this thread waited for a lock is heard in the next turn.
  await new Promise((resolve) => setImmediate(resolve))
  if (stop.came()) {
    log.note('stopping during the start')
    if (outcome !== undefined && 'error' in outcome) log.warn('the start had failed', outcome.error)
    if (outcome !== undefined && 'service' in outcome) await outcome.service.stop()
    log.note('stopped')
    return undefined
  }
  return await starting
}

/** The text on a first token: the token if the store had none, else how to issue another. */
async function firstToken(
  { tokens }: Store,
  url: string,
  location: StoreLocation,
  world: World,
): Promise<string> {
  const request = { account: 'default', label: 'first token', scopes, lifetimeMs: null }
  const issued = await issueFirstToken(tokens, request, world.clock.wallMs(), world.randomBytes)
  if (issued === undefined) {
    const issuing = commandToPaste(world, ['token', 'issue', '--account', 'default'], location)
    return `The store holds tokens already. Issue another for the same account with: ${issuing}`
  }
  // A service that listens on every address is reached at the loopback address.
  const base = url.replace(/\/\/[0.]+:/, '//127.0.0.1:').replace(/\/\/\[[0:]+\]:/, '//[::1]:')
  // The requests work with a curl of ten years ago. `-w` ends an answer with a newline.
  return `
This is the first token, for the account "default". It is shown only now; keep it safe.

  export PLANTS_TOKEN=${issued.plain.reveal()}

In another terminal, paste that, then try:

  curl -i -w '\\n' ${quotedForShell(`${base}/plants`)} -H "Authorization: Bearer $PLANTS_TOKEN" -H 'Content-Type: application/json' -d '{"id": 7, "name": "Monstera deliciosa", "tag": "indoor"}'
  curl -i -w '\\n' ${quotedForShell(`${base}/plants`)} -H "Authorization: Bearer $PLANTS_TOKEN"
  curl -i -w '\\n' -X DELETE ${quotedForShell(`${base}/plants/7`)} -H "Authorization: Bearer $PLANTS_TOKEN"

Or use the reference in a browser: ${base}/docs
Ctrl-C stops the service.
`
}
