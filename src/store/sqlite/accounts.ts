/** Kept accounts in SQLite, for the server that looks them up and the command that changes them. */

import { toAccount, toAccountRow, toAuthorRow, toPerson } from '../rows.ts';
import type { KeptAccounts } from '../store.ts';
import { escapeText } from '../text-escape.ts';
import { createChange, createInsert, createSelect, renewAuthor } from './statements.ts';
import type { SqliteContext } from './writes.ts';

type Context = Omit<SqliteContext, 'createId'>;

export function createKeptAccounts(context: Context): KeptAccounts {
  const { database, writes, now } = context;
  const find = createSelect(database, 'accounts', toAccount)('WHERE username = ?');
  const list = createSelect(database, 'accounts', toPerson)('ORDER BY username');
  const add = createInsert(context, 'accounts', 'ON CONFLICT DO NOTHING');
  const addAuthor = createInsert(context, 'authors', renewAuthor);
  const setHash = createChange(context, [
    'UPDATE',
    'accounts',
    'SET password_hash = ? WHERE username = ?',
  ]);
  const remove = createChange(context, ['DELETE FROM', 'accounts', 'WHERE username = ?']);

  return {
    find: (username) => find.first(escapeText(username)),
    list: () => list.all(),
    add: (account) =>
      writes.run(() => {
        if (!add(toAccountRow(account))) return false;
        const { id, username: name, email } = account;
        return addAuthor(toAuthorRow({ id, name, email, createdAt: now() }));
      }),
    setPasswordHash: (username, hash) => writes.run(() => setHash(hash, escapeText(username))),
    remove: (username) => writes.run(() => remove(escapeText(username))),
  };
}
