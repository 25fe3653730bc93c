/** What clients of the field send, each with one meaning (R6a, R8, R10, R15, R21). */

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  createPasswordChecker,
  createPasswordLine,
  hashPassword,
} from '../../dist/auth/password.js';
import { startServer } from '../support/server.ts';
import { createDirectory } from '../support/uploads.ts';

const json = { 'Content-Type': 'application/json' };

test('a number of up to 17 digits that names a double is taken, and no other (R10)', async (t) => {
  const server = await startServer(t);
  const post = async (number: string): Promise<number> => {
    const init = { method: 'POST', headers: json, body: `{"title":"x","price":${number}}` };
    return (await server.fetch('/api/articles', init)).status;
  };
  // As PHP, jansson and `%.17g` of C write 9.95, 0.1, 1e23, -1.1 and the greatest double.
  const exact = ['9.9499999999999993', '0.10000000000000001', '9.9999999999999992e+22'];
  exact.push('-1.1000000000000001', '1.7976931348623157e+308', '4.9406564584124654e-324');
  for (const number of exact) assert.equal(await post(number), 201, number);
  const rounded = ['9007199254740993', '9.9499999999999994', '0.1000000000000000055', '1e400'];
  for (const number of rounded) assert.equal(await post(number), 400, number);
});

test('null of an optional member is absent where a record is created (R8)', async (t) => {
  const server = await startServer(t);
  const nulls = { id: null, author: null, content: null, tags: null, publishedAt: null };
  for (const article of [nulls, { author: { givenName: null, familyName: 'b' }, other: null }]) {
    const made = await server.send('POST', '/api/articles', { title: 'x', ...article });
    assert.equal(made.status, 201, await made.text());
  }
  const articles = (await (await server.fetch('/api/articles')).json()) as object[];
  assert.deepEqual(articles.at(-2), { title: 'x', id: 3 });
  assert.deepEqual(articles.at(-1), {
    title: 'x',
    author: { familyName: 'b' },
    other: null,
    id: 4,
  });
  const todo = await server.send('POST', '/api/todos', { title: 'x', completed: null });
  assert.equal(todo.status, 201);
  const path = new URL(todo.headers.get('location') ?? '').pathname;
  assert.match(await (await server.fetch(path)).text(), /"completed":false/);
  // What is required stays so, and a change to null is refused (R37).
  assert.equal((await server.send('POST', '/api/todos', { title: null })).status, 422);
  assert.equal((await server.send('POST', '/api/articles', { title: null })).status, 422);
  const headers = { 'Content-Type': 'application/merge-patch+json' };
  const patch = { method: 'PATCH', headers, body: '{"completed":null}' };
  assert.equal((await server.fetch(path, patch)).status, 422);
});

test('PUT of a post takes the status of a whole record (R8)', async (t) => {
  const server = await startServer(t);
  const made = await server.send('POST', '/posts', { title: 'a', content: 'b' });
  const path = made.headers.get('location') ?? '';
  const whole = (await (await server.fetch(path)).json()) as object;
  assert.equal((await server.send('PUT', path, { ...whole, status: 'PUBLISHED' })).status, 204);
  assert.match(await (await server.fetch(path)).text(), /"PUBLISHED"/);
  assert.equal((await server.send('PUT', path, { title: 'c', content: 'd' })).status, 204);
  assert.match(await (await server.fetch(path)).text(), /"c".*"PUBLISHED"/);
  assert.equal((await server.send('PUT', path, { ...whole, status: 'x' })).status, 422);
});

test('conditions hold for a POST of an article with an id (R15)', async (t) => {
  const server = await startServer(t);
  const post = async (id: number | undefined, headers: object): Promise<number> => {
    const body = JSON.stringify({ id, title: 'new' });
    const init = { method: 'POST', headers: { ...json, ...headers }, body };
    return (await server.fetch('/api/articles', init)).status;
  };
  const before = await (await server.fetch('/api/articles/1')).text();
  for (const headers of [{ 'If-None-Match': '*' }, { 'If-Match': '"stale"' }]) {
    assert.equal(await post(1, headers), 412);
  }
  assert.equal(await post(77, { 'If-Match': '*' }), 412);
  assert.equal((await server.fetch('/api/articles/77')).status, 404);
  assert.equal(await (await server.fetch('/api/articles/1')).text(), before);
  const tag = (await server.fetch('/api/articles/1')).headers.get('etag') ?? '';
  assert.equal(await post(1, { 'If-Match': tag, 'Idempotency-Key': 'a' }), 201);
  assert.equal(await post(1, { 'If-Match': tag }), 412);
  assert.equal(await post(77, { 'If-None-Match': '*' }), 201);
  assert.equal(await post(77, { 'If-None-Match': '*' }), 412);
});

test('an article is deleted in the state that is asked for, once under a key (R15)', async (t) => {
  const server = await startServer(t);
  const remove = async (id: string, headers: Readonly<Record<string, string>> = {}) => {
    const init = { method: 'DELETE', headers, redirect: 'manual' } as const;
    const { status, headers: sent } = await server.fetch(id, init);
    return [status, sent.get('location') ?? sent.get('idempotency-replayed')];
  };
  const path = '/api/articles/1';
  const tag = (await server.fetch(path)).headers.get('etag') ?? '';
  const list = (await server.fetch('/api/articles')).headers.get('etag');
  assert.deepEqual(await remove(path, { 'If-Match': '"stale"' }), [412, null]);
  assert.deepEqual(await remove(path, { 'If-None-Match': tag }), [412, null]);
  // The link of `Location` holds for every method (R12).
  assert.deepEqual(await remove('/articles/1'), [308, path]);
  assert.equal((await server.fetch(path)).status, 200);
  const headers = { 'If-Match': tag, 'Idempotency-Key': 'a' };
  assert.deepEqual(await remove(path, headers), [204, null]);
  assert.deepEqual(await remove(path, headers), [204, 'true']);
  assert.deepEqual(await remove(path), [404, null]);
  assert.equal((await server.fetch(path)).status, 404);
  assert.notEqual((await server.fetch('/api/articles')).headers.get('etag'), list);
  for (const id of ['01', 'x', '-1'])
    assert.deepEqual(await remove(`/api/articles/${id}`), [404, null]);
  const guarded = await startServer(t, { env: { REQUIRE_AUTH: 'writes' } });
  assert.equal((await guarded.fetch(path, { method: 'DELETE' })).status, 401);
});

test('a password is compared as sent, then composed (R21)', async () => {
  const check = createPasswordChecker(createPasswordLine(4));
  const standing = { client: 'a', failures: 0 };
  const composed = await hashPassword('pass\u00e9word');
  const decomposed = await hashPassword('passe\u0301word');
  assert.equal(await check('pass\u00e9word', composed, standing), true);
  assert.equal(await check('passe\u0301word', composed, standing), true);
  assert.equal(await check('passe\u0301word', decomposed, standing), true);
  assert.equal(await check('pass\u00e9word', decomposed, standing), false);
});

test('a username is compared composed, and without white space around it (R21)', async (t) => {
  const folder = await createDirectory(t);
  const USERS_FILE = join(folder, 'users.json');
  const username = `Zo\u00e9${'\u00e9'.repeat(253)}`;
  const passwordHash = await hashPassword('right');
  await writeFile(
    USERS_FILE,
    JSON.stringify([{ username, email: 'z@example.com', roles: [], passwordHash }]),
  );
  const server = await startServer(t, { env: { USERS_FILE, LOGIN_FAILURES_MAX: '2' } });
  const logIn = async (name: string, password = 'right'): Promise<number> =>
    (await server.send('POST', '/auth/login', { username: name, password })).status;
  const decomposed = username.normalize('NFD');
  for (const name of [username, decomposed, `${decomposed} `, ` \u00a0${username}\n`]) {
    assert.equal(await logIn(name), 200, JSON.stringify(name));
  }
  for (const name of [`${username}e`, `${decomposed}e`, `${decomposed}${'\u0301'.repeat(2_000)}`]) {
    assert.equal(await logIn(name), 401, JSON.stringify(name));
  }
  // All forms are one account, so that none has failures of its own.
  for (const name of [username, decomposed]) assert.equal(await logIn(name, 'wrong'), 401);
  assert.equal(await logIn(`${username} `), 429);
});
