// From whatever was thrown to the reply that says so.
import { errorJson } from '../contract/plants.ts'
import { type Refusal, refusals } from '../contract/refusals.ts'
import { Failure } from '../domain/failure.ts'
import { jsonHeaders, type Reply, withHeaders } from './reply.ts'

/** What is no Failure is a defect: the caller learns nothing of it, the log everything. */
export function asFailure(error: unknown): Failure<Refusal> {
  if (error instanceof Failure) return error as Failure<Refusal>
  return new Failure<Refusal>('internal', refusals.internal.example, { cause: error })
}

export function refuse(failure: Failure<Refusal>): Reply {
  const { status, header } = refusals[failure.refusal]
  const headers =
    header === undefined
      ? jsonHeaders
      : withHeaders(jsonHeaders, { [header.name]: header.value(failure.detail ?? '') })
  return { status, headers, body: errorJson(status, failure.message) }
}
