/** Requests that go wrong on purpose, on routes of the reference. */

import type { ErrorCode } from '../../dist/errors.js';
import { file, form } from './files.ts';
import { type Change, type Entry, isForm, withPart } from './reference.ts';

const long = 'x'.repeat(2_000);
const bearer = { Authorization: 'Bearer nothing' };
const patchType = 'application/json-patch+json';
const mergePatchType = 'application/merge-patch+json';
const patch = (change: object): Change => ({ type: patchType, body: JSON.stringify([change]) });
const newPassword = 'a jar of black ink';
const wrongPassword = JSON.stringify({ username: 'user', password: 'wrong', newPassword });
/**
 * What goes wrong on purpose, by the code of the refusal. `tokenOfUser`: of an account that has
 * written none of the posts; with its scheme.
 */
export const faults: Readonly<
  Partial<Record<ErrorCode, (entry: Entry, tokenOfUser: string) => Change>>
> = {
  missing_token: () => ({}),
  invalid_token: () => ({ headers: bearer }),
  invalid_credentials: () => ({ body: wrongPassword }),
  too_many_requests: ({ path }) => (path.endsWith('/comments') ? {} : { body: wrongPassword }),
  storage_full: () => ({}),
  not_found: ({ path }) => {
    // The redirect does not look for the article.
    if (path === '/articles/{id}') return { params: { id: '01' } };
    const id = path.includes('articles') ? '999' : '00000000-0000-7000-8000-000000000000';
    // Of several comments the body has the ids.
    const body = path.endsWith('/removals') && { body: JSON.stringify({ ids: [id] }) };
    return { params: { id, name: 'missing.txt' }, ...body };
  },
  not_acceptable: () => ({ headers: { Accept: 'application/x-none' } }),
  unsupported_media_type: () => ({ body: 'x', headers: { 'Content-Type': 'text/csv' } }),
  invalid_parameter: () => ({ query: 'limit=0' }),
  precondition_failed: (entry) =>
    isForm(entry)
      ? { ...withPart(entry), headers: { 'If-None-Match': '*' } }
      : { headers: { 'If-Match': '"none"' } },
  content_too_large: (entry) => ({
    body: isForm(entry) ? form({ part: file(long, 'a') }) : JSON.stringify({ title: long }),
  }),
  forbidden: (entry, Authorization) => ({ ...withPart(entry), headers: { Authorization } }),
  foreign_origin: () => ({ headers: { Origin: 'https://evil.example' } }),
  invalid_multipart: () => ({
    body: 'x',
    headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
  }),
  invalid_json: () => ({ body: '{' }),
  invalid_body: (entry) => {
    if (isForm(entry)) return { body: form({ name: 'x' }) };
    if (entry.method !== 'PATCH') return { body: '{}' };
    const ofRecord = { type: mergePatchType, body: '{"title":null,"status":null}' };
    if (!entry.path.includes('articles')) return ofRecord;
    return patch({ op: 'remove', path: entry.path.endsWith('s') ? '/0' : '/title' });
  },
  invalid_patch: () => ({ type: patchType, body: '{}' }),
  patch_not_applicable: () => patch({ op: 'remove', path: '/7/none' }),
  invalid_idempotency_key: () => ({ headers: { 'Idempotency-Key': '""' } }),
  idempotency_key_reused: () => ({ headers: { 'Idempotency-Key': 'used' } }),
  range_not_satisfiable: () => ({ headers: { Range: 'bytes=9999-' } }),
};
