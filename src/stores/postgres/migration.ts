// The command's way to the schema: with time enough for a large table, and no schema asked for.
import type { PostgresLocation } from '../../storeLocation.ts'
import { commandDeadlines } from './deadlines.ts'
import { Nodes } from './nodes.ts'
import { refusal } from './refusal.ts'
import { migrate, pendingStatements } from './schema.ts'

/**
 * Brings a database to this version's schema and resolves to the statements that were needed; where
 * `onlyLook` it carries out none. Rejects with StoreRefused.
 */
export async function migratePostgresStore(
  location: PostgresLocation,
  onlyLook: boolean,
): Promise<readonly string[]> {
  const nodes = new Nodes(location, commandDeadlines, () => {})
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
