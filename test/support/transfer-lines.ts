/** One small record of each kind, as the lines of an export. */

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { toAccountId } from '../../dist/auth/accounts.js';
import { exportFrom, type Place } from './transfer.ts';

export const idOf = (number: number): string =>
  `018f3173-7000-7000-8000-${String(number).padStart(12, '0')}`;
export const header = { format: 'inkwell', version: 1, articleCounter: 4 };
export const end = { kind: 'end' };
export const createdAt = '2024-05-01T10:15:00';
export const author = { kind: 'author', id: idOf(1), name: 'ann', email: '', createdAt };
export const file = { kind: 'file', name: 'a.txt', size: 5 };
export const content = { kind: 'content', base64: 'aGVsbG8=' };
export const todo = { kind: 'todo', id: idOf(2), title: 'a', completed: false };
export const article = { kind: 'article', document: { id: 3, title: 'a' } };
export const post = {
  kind: 'post',
  id: idOf(4),
  title: 'a',
  content: 'b',
  status: 'DRAFT',
  createdAt,
};
export const comment = { kind: 'comment', id: idOf(5), postId: idOf(4), content: 'c', createdAt };
export const pending = { ...comment, id: idOf(6), status: 'PENDING' };
export const records = [author, file, content, todo, article, post, pending, comment];

export function toText(lines: readonly unknown[]): string {
  return lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
}
export const whole = toText([header, ...records, end]);

export function account(passwordHash: string) {
  const id = toAccountId('bob');
  return { id, username: 'bob', email: 'b@example.org', roles: [], passwordHash };
}

/** No record, and no content of a file. */
export async function isEmpty(place: Place): Promise<void> {
  const empty = `${JSON.stringify({ ...header, articleCounter: 0 })}\n${JSON.stringify(end)}\n`;
  assert.equal((await exportFrom(place)).output, empty);
  const names = await readdir(join(place.UPLOAD_DIR, 'inkwell-files'));
  assert.deepEqual(names, ['id']);
}
