/** R40: what is sent again under its key is not done again, whatever the route. Each store: its contract. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';
import { codeOf, json, merge, patch, seen, send, type Sent, under } from '../support/keyed.ts';
import { logIn } from '../support/login.ts';
import { multipartBody, multipartType, part } from '../support/multipart.ts';
import { startServer } from '../support/server.ts';

async function create(url: string, path: string, value: object): Promise<string> {
  const sent = { method: 'POST', path, type: json, body: JSON.stringify(value) };
  const response = await send(url, sent);
  assert.equal(response.status, 201);
  const location = new URL(response.headers.get('location') ?? '', url).pathname;
  return location.replace(/^\/articles/, '/api/articles');
}

const newPost = (url: string) => create(url, '/posts', { title: 'a post', content: 'text' });
const newTodo = (url: string) => create(url, '/api/todos', { title: 'a todo' });
const newArticle = (url: string) => create(url, '/api/articles', { title: 'an article' });

const upload = (path: string, name: string, content: string): Sent => ({
  method: 'POST',
  path,
  type: multipartType,
  body: multipartBody([part('part', content, { fileName: name, type: 'text/plain' })]),
});

/** What a route changes: a text that another write of the same kind makes another one. */
async function stateAt(url: string, path: string): Promise<string> {
  const response = await fetch(`${url}${path}`);
  const tag = path.startsWith('/api/multiparts') ? response.headers.get('etag') : '';
  return `${response.status} ${tag} ${await response.text()}`;
}

interface Case {
  readonly sent: Sent;
  /** The same under the same key, but for this. */
  readonly other: Partial<Sent>;
  readonly status: number;
  readonly state: string;
  /** What somebody else does between the first and its repetition. */
  readonly between?: Sent;
}

type Make = (url: string) => Promise<Case> | Case;

const creating = (path: string, value: object): Make => {
  const sent = { method: 'POST', path, type: json, body: JSON.stringify(value) };
  const other = { body: JSON.stringify({ ...value, title: 'another' }) };
  return () => ({ sent, other, status: 201, state: path });
};
const changing =
  (make: (url: string) => Promise<string>, change: Pick<Sent, 'method' | 'type'>): Make =>
  async (url) => {
    const path = await make(url);
    const of = (title: string): Sent => {
      const value = { title, ...(change.method === 'PUT' && { content: 'text' }) };
      const operations = [{ op: 'replace', path: '/title', value: title }];
      return { ...change, path, body: JSON.stringify(change.type === patch ? operations : value) };
    };
    const [sent, other, between] = [of('first'), of('other'), of('between')];
    return { sent, other, between, status: 204, state: path };
  };
const removing =
  (make: (url: string) => Promise<string>): Make =>
  async (url) => {
    const path = await make(url);
    return {
      sent: { method: 'DELETE', path },
      other: { path: await make(url) },
      status: 204,
      state: path,
    };
  };
const uploading =
  (path: string): Make =>
  () => {
    const name = `${randomUUID()}.txt`;
    const [sent, between] = [upload(path, name, 'first'), upload(path, name, 'between')];
    const other = upload(path, `${randomUUID()}.txt`, 'first');
    return { sent, other, between, status: 200, state: `/api/multiparts/${name}` };
  };
const newFile = async (url: string): Promise<string> => {
  const name = `${randomUUID()}.txt`;
  await send(url, upload('/api/multiparts/simple', name, 'text'));
  return `/api/multiparts/${name}`;
};

const routes: Readonly<Record<string, Make>> = {
  'POST /posts': creating('/posts', { title: 'a', content: 'b' }),
  'PUT /posts/{id}': changing(newPost, { method: 'PUT', type: json }),
  'PATCH /posts/{id}': changing(newPost, { method: 'PATCH', type: merge }),
  'DELETE /posts/{id}': removing(newPost),
  'POST /posts/{id}/comments': async (url) => {
    const path = `${await newPost(url)}/comments`;
    const sent = { method: 'POST', path, type: json, body: '{"content":"a"}' };
    return { sent, other: { body: '{"content":"b"}' }, status: 201, state: path };
  },
  'DELETE /comments/{id}': removing(async (url) =>
    create(url, `${await newPost(url)}/comments`, { content: 'a' }),
  ),
  'POST /api/todos': creating('/api/todos', { title: 'a' }),
  'PATCH /api/todos/{id}': changing(newTodo, { method: 'PATCH', type: merge }),
  'DELETE /api/todos/{id}': removing(newTodo),
  'POST /api/articles': creating('/api/articles', { title: 'a' }),
  'PATCH /api/articles': async (url) => {
    await newArticle(url);
    const of = (title: string): Sent => {
      const body = JSON.stringify([{ op: 'replace', path: '/0/title', value: title }]);
      return { method: 'PATCH', path: '/api/articles', type: patch, body };
    };
    const [sent, other, between] = [of('first'), of('other'), of('between')];
    return { sent, other, between, status: 204, state: '/api/articles' };
  },
  'PATCH /api/articles/{id}': changing(newArticle, { method: 'PATCH', type: patch }),
  'POST /api/multiparts/simple': uploading('/api/multiparts/simple'),
  'POST /api/multiparts/list': uploading('/api/multiparts/list'),
  'DELETE /api/multiparts/{name}': removing(newFile),
};

describe('a write under a key', () => {
  for (const [route, make] of Object.entries(routes)) {
    it(`is done once: ${route}`, async (t) => {
      const { url } = await startServer(t);
      const { sent, other, status, state, between } = await make(url);
      const key = under(randomUUID());
      const [firstStatus, location, replayed, body] = await seen(await send(url, sent, key));
      assert.deepEqual([firstStatus, replayed], [status, null]);
      if (between !== undefined) assert.equal((await send(url, between)).status, status);
      const stateThen = await stateAt(url, state);
      const repeated = await seen(await send(url, sent, key));
      assert.deepEqual(repeated, [status, location, 'true', body]);
      assert.equal(await stateAt(url, state), stateThen);
      const refused = await send(url, { ...sent, ...other }, key);
      assert.equal(refused.status, 422);
      assert.equal(await codeOf(refused), 'idempotency_key_reused');
      assert.equal(await stateAt(url, state), stateThen);
      // Under another key, or none, it is another write.
      assert.equal((await send(url, sent)).headers.get('idempotency-replayed'), null);
      if (between !== undefined) assert.notEqual(await stateAt(url, state), stateThen);
    });
  }

  it('is another request by its method, path, media type or body', async (t) => {
    const { url } = await startServer(t);
    const [path, other] = [await newPost(url), await newPost(url)];
    const sent = { method: 'PUT', path, type: json, body: '{"title":"a","content":"b"}' };
    const key = under(randomUUID());
    assert.equal((await send(url, sent, key)).status, 204);
    for (const change of [
      { method: 'DELETE' },
      { path: other },
      { type: 'application/ld+json' },
      { body: '{"title":"a","content":"c"}' },
    ]) {
      const refused = await send(url, { ...sent, ...change }, key);
      assert.equal(refused.status, 422, JSON.stringify(change));
      assert.equal(await codeOf(refused), 'idempotency_key_reused');
    }
  });

  it('with If-Match is answered 204 again, although the tag has changed', async (t) => {
    const { url } = await startServer(t);
    const path = await newPost(url);
    const tag = (await fetch(`${url}${path}`)).headers.get('etag') ?? '';
    for (const sent of [
      { method: 'PATCH', path, type: merge, body: '{"title":"mine"}' },
      { method: 'DELETE', path },
    ]) {
      const etag = (await fetch(`${url}${path}`)).headers.get('etag') ?? '';
      const headers = under(randomUUID(), { 'If-Match': etag });
      assert.equal((await send(url, sent, headers)).status, 204, JSON.stringify(sent));
      assert.deepEqual(
        await seen(await send(url, sent, headers)),
        [204, null, 'true', ''],
        JSON.stringify(sent),
      );
    }
    const gone = await send(url, { method: 'DELETE', path }, { 'If-Match': tag });
    assert.equal(gone.status, 404);
  });

  it('that stores nothing uses up no key', async (t) => {
    const { url } = await startServer(t);
    const key = under(randomUUID());
    const sent = { method: 'POST', path: '/api/todos', type: json, body: '{"title":7}' };
    assert.equal((await send(url, sent, key)).status, 422);
    const path = await newTodo(url);
    const change = { method: 'PATCH', path, type: merge, body: '{"title":"b"}' };
    const missing = { ...change, path: `/api/todos/${randomUUID()}` };
    assert.equal((await send(url, missing, key)).status, 404);
    assert.equal((await send(url, change, { ...key, 'If-Match': '"other"' })).status, 412);
    const { status, headers } = await send(url, change, key);
    assert.deepEqual([status, headers.get('idempotency-replayed')], [204, null]);
  });

  it('belongs to the account of its token, or to all who send none', async (t) => {
    const server = await startServer(t);
    const { url } = server;
    const [ann, admin] = [await logIn(server), await logIn(server, 'admin')];
    const sent = { method: 'POST', path: '/api/todos', type: json, body: '{"title":"a"}' };
    const key = randomUUID();
    const first = new Set<unknown>();
    for (const again of [null, 'true']) {
      for (const authorization of [`Bearer ${ann}`, `Bearer ${admin}`, undefined]) {
        const headers = under(key, authorization === undefined ? {} : { authorization });
        const [status, location, replayed] = await seen(await send(url, sent, headers));
        assert.deepEqual([status, replayed], [201, again], authorization);
        first.add(location);
      }
    }
    assert.equal(first.size, 3);
    const foreign = await send(url, sent, under(key, { authorization: 'Bearer no.to.ken' }));
    assert.deepEqual([foreign.status, await codeOf(foreign)], [401, 'invalid_token']);
  });
});
