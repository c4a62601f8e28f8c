// Judges whether a history of one id could have come from a plant that is in one place: whether
// each operation can be given one moment between its call and its answer, so that, carried out at
// these moments one after the other, they give the answers that were given. Each id of an account is
// judged by itself: a history is linearizable if the history of each id is (Herlihy and Wing).
//
// The search follows Lowe's "Testing for linearizability", as Knossos and Porcupine do. It goes
// through the calls and answers in the order of time and keeps every configuration that is possible
// so far: what is there, and which of the open operations have taken effect. When an operation is
// answered, it must have taken effect. So each configuration in which it has not is carried on by
// open operations, in every order, until it has. If no configuration is left, the history is not
// linearizable, and that answer is the first one that cannot be explained.
//
// An operation whose outcome nobody knows stays open for ever: it may take effect late, or never.
// Three observations keep the configurations few:
// - An operation that only looks takes effect as soon as what is there gives its answer.
// - Of two configurations that are otherwise the same, the one in which more operations of unknown
//   outcome have been used up is dropped: the other one can do all that it can.
// - Operations of unknown outcome with the same effect are the same, and so are creates whose plant
//   nobody has seen.

/** One request and what became of it. Times are in milliseconds of one clock. */
export interface Operation {
  readonly request: Request
  /** Undefined if it may have taken effect or not, or may still do so. */
  readonly answer: string | undefined
  readonly calledMs: number
  /** Of no meaning without an answer. */
  readonly answeredMs: number
}

/**
 * A create is answered `created`, `taken` or `key reused`, a delete `deleted` or `missing`, and a
 * read by the plant that it shows, or by the empty string.
 */
export type Request =
  | { readonly kind: 'create'; readonly plant: string; readonly key: string }
  | { readonly kind: 'delete' }
  | { readonly kind: 'read' }

export type Verdict =
  | { readonly kind: 'linearizable' }
  /** The search was given up. */
  | { readonly kind: 'not judged' }
  | Offence

export interface Offence {
  readonly kind: 'not linearizable'
  /** The first operation whose answer cannot be explained. */
  readonly at: Operation
  /** The plants that may have been there before it; empty for none. */
  readonly there: readonly string[]
}

const describedMax = 40

/** What is there: nothing, or a plant and, on a line of its own, the key of its create. */
type State = string
const nothing: State = ''
const shown = (state: State): string => state.split('\n')[0] ?? ''

interface Configuration {
  readonly state: State
  /** The open operations with an answer that have taken effect, a bit for each. */
  readonly done: bigint
  /** Those of unknown outcome, likewise. */
  readonly used: bigint
}

const lookingAnswers = ['missing', 'taken', 'key reused']
const looks = ({ request, answer }: Operation): boolean =>
  request.kind === 'read' || lookingAnswers.includes(answer ?? '')

/** The contract: what a request is answered, and what is there after it. */
function carriedOut(request: Request, state: State): { answer: string; after: State } {
  if (request.kind === 'read') return { answer: shown(state), after: state }
  if (request.kind === 'delete')
    return { answer: state === nothing ? 'missing' : 'deleted', after: nothing }
  const created = `${request.plant}\n${request.key}`
  if (state === nothing) return { answer: 'created', after: created }
  if (request.key === '' || !state.endsWith(`\n${request.key}`))
    return { answer: 'taken', after: state }
  return { answer: state === created ? 'created' : 'key reused', after: state }
}

/**
 * `configurationsMax` bounds the time and the memory of the search. The trials need two to five
 * configurations for each operation.
 */
export function judge(history: readonly Operation[], configurationsMax = 300_000): Verdict {
  const events = withUnseenAlike(history).flatMap((operation) => [
    { atMs: operation.calledMs, operation, isCall: true },
    ...(operation.answer === undefined
      ? []
      : [{ atMs: operation.answeredMs, operation, isCall: false }]),
  ])
  // At the same moment the calls come first: then the operations may be in either order.
  events.sort((one, other) => one.atMs - other.atMs || Number(other.isCall) - Number(one.isCall))
  const open = new Map<Operation, bigint>()
  const unknown = new Map<Operation, bigint>()
  let configurations: readonly Configuration[] = [{ state: nothing, done: 0n, used: 0n }]
  let tried = 0
  for (const { operation, isCall } of events) {
    if (isCall) {
      if (operation.answer === undefined) unknown.set(operation, 1n << BigInt(unknown.size))
      else open.set(operation, freeBit(open))
      if (looks(operation)) configurations = configurations.map(withLooks)
      continue
    }
    const bit = open.get(operation) ?? 0n
    const explained = new Fewest()
    const met = new Fewest()
    const waiting = configurations.filter((configuration) => met.add(configuration))
    for (const configuration of waiting) {
      if (configuration.done & bit) explained.add(configuration)
      else waiting.push(...carriedOn(configuration).filter((next) => met.add(next)))
      if (tried + waiting.length > configurationsMax) return { kind: 'not judged' }
    }
    tried += waiting.length
    if (explained.all.length === 0) {
      const there = new Set(configurations.map(({ state }) => shown(state)))
      return { kind: 'not linearizable', at: operation, there: [...there] }
    }
    open.delete(operation)
    configurations = explained.all.map((each) => ({ ...each, done: each.done & ~bit }))
  }
  return { kind: 'linearizable' }

  /** What may come next: each open operation that changes something, if its answer fits. */
  function carriedOn({ state, done, used }: Configuration): Configuration[] {
    const found: Configuration[] = []
    for (const [operation, bit] of open) {
      if (done & bit || looks(operation)) continue
      const { answer, after } = carriedOut(operation.request, state)
      if (answer === operation.answer)
        found.push(withLooks({ state: after, done: done | bit, used }))
    }
    const effects = new Set<State>([state])
    for (const [{ request }, bit] of unknown) {
      const { after } = carriedOut(request, state)
      if (used & bit || effects.has(after)) continue
      effects.add(after)
      found.push(withLooks({ state: after, done, used: used | bit }))
    }
    return found
  }

  /** Lets all open operations that only look take effect, if what is there gives their answer. */
  function withLooks(configuration: Configuration): Configuration {
    let { done } = configuration
    for (const [operation, bit] of open)
      if (looks(operation)) {
        const { answer } = carriedOut(operation.request, configuration.state)
        if (answer === operation.answer) done |= bit
      }
    return { ...configuration, done }
  }
}

/** The last operations up to an answer that cannot be explained, a line for each. */
export function describeOffence(history: readonly Operation[], { at, there }: Offence): string {
  const end = history
    .filter(({ calledMs }) => calledMs <= at.answeredMs)
    .toSorted((one, other) => one.calledMs - other.calledMs)
    .slice(-describedMax)
  const startMs = end[0]?.calledMs ?? 0
  const lines = [...end.filter((operation) => operation !== at), at].map((operation) => {
    const { request, answer, calledMs, answeredMs } = operation
    const plant = request.kind === 'create' ? ` ${request.plant} ${request.key}` : ''
    const answeredAt = answer === undefined ? '?' : (answeredMs - startMs).toFixed(3)
    const times = `${(calledMs - startMs).toFixed(3)} to ${answeredAt} ms`
    return `${times}: ${request.kind}${plant} -> ${answer === '' ? 'nothing' : (answer ?? '?')}`
  })
  const before = there.map((plant) => plant || 'nothing').join(' or ')
  return `The last of these answers is wrong. Before it there was ${before}.\n${lines.join('\n')}`
}

/** Configurations without those that others make needless. */
class Fewest {
  readonly #alike = new Map<string, Configuration[]>()

  get all(): readonly Configuration[] {
    return [...this.#alike.values()].flat()
  }

  /** Says whether it was needed. */
  add(configuration: Configuration): boolean {
    const { state, done, used } = configuration
    const key = `${done} ${state}`
    const others = this.#alike.get(key) ?? []
    if (others.some((other) => (other.used & used) === other.used)) return false
    const needed = others.filter((other) => (other.used & used) !== used)
    this.#alike.set(key, [...needed, configuration])
    return true
  }
}

/** Gives the creates of unknown outcome one plant if no read shows theirs and none repeats them. */
function withUnseenAlike(history: readonly Operation[]): readonly Operation[] {
  const seen = new Set<string | undefined>()
  const keys = new Set<string>()
  const repeated = new Set<string>()
  for (const { request, answer } of history) {
    if (request.kind === 'read') seen.add(answer)
    if (request.kind !== 'create' || request.key === '') continue
    if (keys.has(request.key)) repeated.add(request.key)
    keys.add(request.key)
  }
  return history.map((operation) => {
    const { request, answer } = operation
    if (request.kind !== 'create' || answer !== undefined) return operation
    if (seen.has(request.plant) || repeated.has(request.key)) return operation
    return {
      ...operation,
      request: { kind: 'create', plant: '(a plant that nobody saw)', key: '' },
    }
  })
}

function freeBit(open: ReadonlyMap<Operation, bigint>): bigint {
  const taken = [...open.values()].reduce((all, bit) => all | bit, 0n)
  let bit = 1n
  while (taken & bit) bit <<= 1n
  return bit
}
