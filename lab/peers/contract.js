// What the peers have in common: the schemas of the contract, the token of a request, and the form
// of a plant.
import { hash } from 'node:crypto'

const id = { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
const limit = { type: 'integer', minimum: 0, maximum: 2 ** 31 - 1 }
const properties = { name: { type: 'string' }, tag: { type: 'string' } }

export const plant = { type: 'object', required: ['name'], properties }
export const newPlant = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id, ...properties },
}
export const listQuery = { type: 'object', properties: { limit } }
export const plantPath = { type: 'object', required: ['id'], properties: { id } }
export const failure = {
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'integer' }, message: { type: 'string' } },
}

/** The hash of the token of a request; undefined if it has none. */
export function tokenHash(authorization) {
  return authorization?.startsWith('Bearer ')
    ? hashOf(authorization.slice('Bearer '.length))
    : undefined
}

export function hashOf(token) {
  return hash('sha256', token, 'buffer')
}

export function withoutEmptyTag({ name, tag }) {
  return tag === null ? { name } : { name, tag }
}
