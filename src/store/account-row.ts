/** A row of the table of accounts, which both durable drivers write alike ↔ the record. */

import type { Account } from './model.ts';
import { escapeText, unescapeText } from './text-escape.ts';

type Row = Readonly<Record<string, unknown>>;

export function toAccount(row: Row): Account {
  return { ...toListed(row), passwordHash: String(row['password_hash']) };
}

/** Of a row without the hash. */
export function toListed(row: Row): Omit<Account, 'passwordHash'> {
  const roles: unknown = JSON.parse(unescapeText(String(row['roles'])));
  return {
    id: String(row['id']),
    username: unescapeText(String(row['username'])),
    email: unescapeText(String(row['email'])),
    roles: Array.isArray(roles) ? roles.map(String) : [],
  };
}

/** The columns that hold text of a person's choice. */
export function toTexts(
  account: Account,
): Readonly<Record<'username' | 'email' | 'roles', string>> {
  return {
    username: escapeText(account.username),
    email: escapeText(account.email),
    roles: escapeText(JSON.stringify(account.roles)),
  };
}
