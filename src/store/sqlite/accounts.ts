/** Kept accounts in SQLite, for the server that looks them up and the command that changes them. */

import { toAccount, toListed, toTexts } from '../account-row.ts';
import type { SqliteContext } from './writes.ts';
import type { KeptAccounts } from '../store.ts';
import { escapeText } from '../text-escape.ts';

type Context = Pick<SqliteContext, 'database' | 'writes' | 'now'>;

export function createKeptAccounts({ database, writes, now }: Context): KeptAccounts {
  const columns = 'username, id, email, roles';
  const find = database.prepare(
    `SELECT ${columns}, password_hash FROM accounts WHERE username = ?`,
  );
  const list = database.prepare(`SELECT ${columns} FROM accounts ORDER BY username`);
  const add = database.prepare(
    `INSERT INTO accounts (${columns}, password_hash) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
  );
  const addAuthor = database.prepare(
    `INSERT INTO authors (id, name, email, created_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = excluded.email`,
  );
  const setHash = database.prepare('UPDATE accounts SET password_hash = ? WHERE username = ?');
  const remove = database.prepare('DELETE FROM accounts WHERE username = ?');
  const changes = (statement: typeof add, ...values: readonly string[]): boolean =>
    Number(statement.run(...values).changes) > 0;

  return {
    find(username) {
      const row = find.get(escapeText(username));
      return row && toAccount(row);
    },
    list: () => list.all().map(toListed),
    add: (account) =>
      writes.run(() => {
        const { username, email, roles } = toTexts(account);
        if (!changes(add, username, account.id, email, roles, account.passwordHash)) return false;
        addAuthor.run(account.id, username, email, now());
        return true;
      }),
    setPasswordHash: (username, hash) =>
      writes.run(() => changes(setHash, hash, escapeText(username))),
    remove: (username) => writes.run(() => changes(remove, escapeText(username))),
  };
}
