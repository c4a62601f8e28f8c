// The command's way to the schema: with time enough for a large table, and no schema asked for.
import type { PostgresLocation } from '../../storeLocation.ts'
import { defaultDeadlines, Nodes } from './nodes.ts'
import { refusal } from './refusal.ts'
import { migrate, pendingStatements } from './schema.ts'

/** How long a statement of a migration may take. */
const statementMs = 3_600_000
const deadlines = { ...defaultDeadlines, statementMs, answerMs: statementMs + 5000 }

/**
 * Brings a database to this version's schema and resolves to the statements that were needed; where
 * `onlyLook` it carries out none. Rejects with StoreRefused.
 */
export async function migratePostgresStore(location: PostgresLocation, onlyLook: boolean): Promise<readonly string[]> {
  const nodes = new Nodes(location, deadlines, () => {})
  try {
    await nodes.connect()
    const pending = await pendingStatements(nodes)
    if (!onlyLook) await migrate(nodes, pending)
    return pending
  } catch (error) {
    throw refusal(location, error)
  } finally {
    await nodes.close()
  }
}
