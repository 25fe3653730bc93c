/** The ports in SQL that are the same in both drivers. */

import { andThen } from '../../maybe-promise.ts';
import type { FileLimits } from '../file-index.ts';
import type { Account } from '../model.ts';
import { toRepeated } from '../once.ts';
import {
  createAccounts,
  kinds,
  type RecordOf,
  type Table as RecordTable,
  toPosts,
  toTodos,
} from '../shared.ts';
import type { DriverOptions, Requests } from '../store.ts';
import { createStoredAccounts } from './accounts.ts';
import { createArticles } from './articles.ts';
import { createChanges } from './changes.ts';
import { createFileIndex } from './files.ts';
import { createFind, createList } from './lists.ts';
import { toFirstWrite } from './rows.ts';
import type { Sql } from './statements.ts';

export interface RecordDeps extends Pick<DriverOptions, 'createId' | 'now'> {
  readonly sql: Sql;
}

/** The ports that are the same in both drivers. `configured`: the accounts of this start (R20). */
export function createPorts(deps: RecordDeps, configured: readonly Account[]) {
  const { sql, now } = deps;
  const stored = createStoredAccounts(sql, now);
  return {
    keepsObjects: false,
    posts: toPosts(createTable(sql, 'posts'), deps),
    authors: { find: createFind(sql, ['authors', 'id']) },
    accounts: createAccounts(configured, stored),
    storedAccounts: stored,
    todos: toTodos(createTable(sql, 'todos'), deps),
    articles: createArticles(sql),
    requests: sql.requests,
    openFileIndex: (limits: FileLimits) => createFileIndex(sql, limits),
  };
}

/** The comments of a post are deleted by the foreign key. */
export function createTable<N extends 'posts' | 'comments' | 'pending_comments' | 'todos'>(
  sql: Sql,
  name: N,
): RecordTable<RecordOf[N]> {
  return {
    find: createFind(sql, [name, 'id']),
    list: (...list) => createList(sql, name, list),
    add: sql.createInsert(name),
    ...createChanges(sql, [name, 'id'], kinds[name]),
  };
}

/** Finds a write that was done under a key. `isKept`: the condition that the key is valid still. */
export function createFindRequest(
  { schema, read }: Pick<Sql, 'schema' | 'read'>,
  isKept: string,
): Requests['find'] {
  const text = `SELECT print, result FROM ${schema}requests WHERE key = $1 AND ${isKept}`;
  return ({ key, fingerprint }) =>
    andThen(read(text, [key]), ([row]) => row && toRepeated(toFirstWrite(row), fingerprint));
}
