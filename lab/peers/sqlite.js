// The tables and the statements of the peers on SQLite, whose two drivers are alike in what is used
// here: better-sqlite3 and bun:sqlite.
import { hashOf } from './contract.js'

/** Makes the tables and stores the token. */
export function prepareStore(database) {
  database.exec('pragma journal_mode = wal')
  database.exec('pragma synchronous = full')
  database.exec(`
    create table if not exists plants (
      account text not null, id integer not null, name text not null, tag text, primary key (account, id)
    ) strict, without rowid;
    create table if not exists tokens (hash blob not null primary key, account text not null) strict, without rowid`)
  database
    .prepare(`insert into tokens (hash, account) values (?, 'default') on conflict do nothing`)
    .run(hashOf(process.env.TOKEN))
  return {
    findAccount: database.prepare('select account from tokens where hash = ?'),
    createPlant: database.prepare(
      'insert into plants (account, id, name, tag) values (?, ?, ?, ?) on conflict do nothing',
    ),
    // SQLite takes a negative limit as none.
    listPlants: database.prepare(
      'select name, tag from plants where account = ? order by id limit ?',
    ),
    deletePlant: database.prepare('delete from plants where account = ? and id = ?'),
  }
}
