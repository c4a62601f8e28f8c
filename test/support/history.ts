// Clients that meet at a few ids, and note what they asked, when, and what they were answered.
import { until } from './clock.ts'
import { type HttpAnswer, HttpConnection } from './httpConnection.ts'
import { describeOffence, judge, type Operation, type Request } from './linearizability.ts'
import { accepts } from './process.ts'

export interface History {
  readonly requests: number
  /** Of these, the writes of which nobody knows whether they were done. */
  readonly unknown: number
  /** A register is what was asked about one id of one account; a list asks about each id. */
  readonly registers: readonly (readonly Operation[])[]
}

/** A service process, and the token of an account. */
export interface Door {
  readonly url: string
  readonly token: string
}

const ids = [0, 1, 2, 3]
const clientsPerDoor = 4
/** A history of fewer would prove little. */
const requestsMin = 500
/** No answer may take longer than this: it would be a hang. */
const hangMs = 30_000
const retryPauseMs = 50

/**
 * Lets clients create, delete and list at every door for as long as something else goes on, and
 * until there are enough requests. Rejects if a client gets an answer that no client may get.
 */
export async function record(
  doors: readonly Door[],
  meanwhile: Promise<unknown>,
): Promise<History> {
  const accounts = new Map(doors.map(({ token }) => [token, ids.map((): Operation[] => [])]))
  const counts = { requests: 0, unknown: 0 }
  const clients = doors.flatMap((door) =>
    Array.from(
      { length: clientsPerDoor },
      () => new Client(door, accounts.get(door.token) ?? [], counts),
    ),
  )
  let stopped = false
  const stop = (): void => {
    stopped = true
  }
  const enough = meanwhile.then(() =>
    until('there are enough requests', () => stopped || counts.requests >= requestsMin),
  )
  const working = clients.map((client) => client.work(() => stopped))
  await Promise.all([enough, ...working].map((each) => each.finally(stop)))
  await Promise.all(clients.map((client) => client.end()))
  return { ...counts, registers: [...accounts.values()].flat() }
}

/** An offence is the end of a register that is not linearizable, in lines for people. */
export interface Judgement {
  readonly judged: number
  /** Registers whose judgement would have taken too long. */
  readonly notJudged: number
  /** Those of the shortest registers first. */
  readonly offences: readonly string[]
}

export function judgementOn({ registers }: History): Judgement {
  const judged = registers
    .toSorted((one, another) => one.length - another.length)
    .map((register) => ({ register, verdict: judge(register) }))
  const notJudged = judged.filter(({ verdict }) => verdict.kind === 'not judged').length
  const offences = judged.flatMap(({ register, verdict }) =>
    verdict.kind === 'not linearizable' ? [describeOffence(register, verdict)] : [],
  )
  return { judged: registers.length - notJudged, notJudged, offences }
}

/** What each answer to a write means. */
const meanings: Readonly<Record<string, string>> = {
  'create 200': 'created',
  'create 409': 'taken',
  'create 422': 'key reused',
  'delete 204': 'deleted',
  'delete 404': 'missing',
}

class Client {
  readonly #port: string
  readonly #connection: HttpConnection
  readonly #registers: readonly Operation[][]
  readonly #counts: { requests: number; unknown: number }

  /** The counts and the registers, one for each id, are those of all clients of an account. */
  constructor(
    { url, token }: Door,
    registers: readonly Operation[][],
    counts: { requests: number; unknown: number },
  ) {
    this.#port = new URL(url).port
    this.#connection = new HttpConnection(url, token)
    this.#registers = registers
    this.#counts = counts
  }

  async work(isStopped: () => boolean): Promise<void> {
    while (!isStopped()) {
      const id = ids[Math.floor(Math.random() * ids.length)] ?? 0
      const chance = Math.random()
      if (chance < 0.2) await this.#list()
      else if (chance < 0.6) await this.#write(id, { kind: 'delete' })
      else {
        // The number of the request makes its plant unlike all others, so that a read tells much.
        const number = this.#counts.requests
        const tag = number % 3 === 0 ? { tag: 'tagged' } : {}
        const plant = JSON.stringify({ name: `${id} ${number}`, ...tag })
        const create = { kind: 'create', plant, key: number % 2 === 0 ? `k${number}` : '' } as const
        let answer = await this.#write(id, create)
        // With a key it may be repeated, and now and then it is although it was answered.
        while (create.key !== '' && !isStopped() && (!answer || Math.random() < 0.1))
          answer = await this.#write(id, create)
      }
    }
  }

  /** Looks at what is there at the end. */
  async end(): Promise<void> {
    while (!(await this.#list())) await Bun.sleep(retryPauseMs)
    this.#connection.close()
  }

  /** Resolves to what the answer means; to undefined if it does not say what was done. */
  async #write(
    id: number,
    request: Exclude<Request, { kind: 'read' }>,
  ): Promise<string | undefined> {
    const calledMs = performance.now()
    const answered =
      request.kind === 'delete'
        ? await this.#ask('DELETE', `/plants/${id}`)
        : await this.#ask(
            'POST',
            '/plants',
            `{"id":${id},${request.plant.slice(1)}`,
            request.key === '' ? {} : { 'idempotency-key': request.key },
          )
    const answeredMs = performance.now()
    if (answered?.status === 503 && answered.body.includes('nothing was done')) return undefined
    const isKnown = answered && !answered.body.includes('whether it was done is not known')
    const answer = isKnown ? meanings[`${request.kind} ${answered.status}`] : undefined
    if (!isKnown) this.#counts.unknown += 1
    else if (!answer) throw new Error(`${request.kind}: ${answered.status} ${answered.body}`)
    this.#registers[id]?.push({ request, answer, calledMs, answeredMs })
    return answer
  }

  /** Resolves to whether there was a list. */
  async #list(): Promise<boolean> {
    const calledMs = performance.now()
    const answered = await this.#ask('GET', '/plants')
    const answeredMs = performance.now()
    if (!answered || answered.status === 503) return false
    if (answered.status !== 200) throw new Error(`list: ${answered.status} ${answered.body}`)
    const plants = JSON.parse(answered.body) as { readonly name: string }[]
    const byId = new Map(plants.map((plant) => [Number.parseInt(plant.name, 10), plant]))
    if (byId.size < plants.length) throw new Error(`list: an id twice in ${answered.body}`)
    for (const [id, register] of this.#registers.entries()) {
      const answer = byId.has(id) ? JSON.stringify(byId.get(id)) : ''
      register.push({ request: { kind: 'read' }, answer, calledMs, answeredMs })
    }
    return true
  }

  /** Resolves to undefined if the connection broke, once the service takes connections again. */
  async #ask(
    method: string,
    target: string,
    body = '',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer | undefined> {
    this.#counts.requests += 1
    try {
      const answer = await this.#connection.request(method, target, body, headers, hangMs)
      if (answer.status === 503) await Bun.sleep(retryPauseMs)
      return answer
    } catch (error) {
      if (String(error).includes('no answer within')) throw error
      await accepts(this.#port)
      return undefined
    }
  }
}
