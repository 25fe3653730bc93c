/**
 * Cached responses, beside those of a server without a cache on the same store: they are equal after
 * each write, whoever wrote. In memory, where there is no other server: `model.test.ts` too.
 */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { post as askGraphql } from '../support/graphql-http.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite } from '../support/sqlite.ts';
import { stores } from '../support/stores.ts';
import { modernClient } from '../support/ws-clients.ts';

interface Ids {
  readonly p: string;
  readonly q: string;
  readonly comment: string;
  readonly todo: string;
  readonly author: string;
}

const postOf = (id: string): string =>
  `{ postById(postId: "${id}") { title author { name posts { id title } } comments { content } } }`;

/** Each is a path, or a query. */
const readsOf = ({ p, q, comment, todo }: Ids): readonly string[] => [
  `/posts/${p}`,
  `/posts/${q}`,
  `/posts/${p}/comments`,
  `/posts/${q}/comments`,
  `/posts/${p}/comments?limit=1`,
  `/comments/${comment}`,
  `/posts?limit=2`,
  `/posts?limit=1&after=${q}`,
  `/api/todos/${todo}`,
  '/api/articles/1',
  '/api/articles?limit=1',
  ...'/posts /posts?status=PUBLISHED /api/todos /api/todos?limit=9 /api/articles'.split(' '),
  postOf(p),
  postOf(q),
  '{ allPosts(first: 2) { title author { name } comments { content } } }',
  '{ allPosts { title status } }',
];

interface Writers {
  /** Another node than that which is asked, if the store can have one. */
  readonly one: TestServer;
  readonly url: string;
  readonly token: string;
}

const merge = { 'Content-Type': 'application/merge-patch+json' };
const jsonPatch = { 'Content-Type': 'application/json-patch+json' };
const retitle = { op: 'replace', path: '/0/title', value: 'y' };
const texts = '{ title: "y", content: "y" }';

/** `more`: the body, and a media type if it is not JSON. */
const send = ({ one, token }: Writers, target: string, ...more: readonly [object?, object?]) => {
  const [method = '', path = ''] = target.split(' ');
  return one.send(method, path, more[0], { ...more[1], Authorization: `Bearer ${token}` });
};
const mutate = ({ one, token }: Writers, query: string) =>
  askGraphql(one, { query }, { Authorization: `Bearer ${token}` });
const comment = (postId: string): string =>
  `mutation { addComment(commentInput: { postId: "${postId}", content: "y" }) }`;

/** By another program than this service; `$` is the prefix of tables. */
const foreign = (url: string, text: string): unknown =>
  url.startsWith('sqlite:')
    ? inSqlite(decodeURI(url.slice('sqlite://'.length)), (file) => {
        file.exec(`PRAGMA foreign_keys = ON; ${text.replaceAll('$', '')}`);
      })
    : database.query(url, text.replaceAll('$', 'inkwell.'));

async function runOverSocket({ port }: TestServer, query: string): Promise<void> {
  const { client, run } = modernClient(port);
  await run(query);
  await client.dispose();
}
async function addAccount(STORE_URL: string): Promise<void> {
  const args = ['accounts', 'add', 'ann', '--email', 'ann@example.org'];
  const given = { env: { STORE_URL }, input: 'a jar of black ink\n' };
  assert.equal((await runCommandHere(args, given)).code, 0);
}

/** The reads that it changes are those that match. */
type Write = readonly [
  RegExp | undefined,
  (writers: Writers, ids: Ids) => unknown,
  isForeign?: boolean,
];
const writes: readonly Write[] = [
  // Over REST.
  [/comments/, (by, { p }) => send(by, `POST /posts/${p}/comments`, { content: 'x' })],
  [/title/, (by, { p }) => send(by, `PUT /posts/${p}`, { title: 'x', content: 'x' })],
  [/limit/, (by, { q }) => send(by, `PATCH /posts/${q}`, { status: 'PUBLISHED' }, merge)],
  [/todos/, (by, { todo }) => send(by, `PATCH /api/todos/${todo}`, { completed: true }, merge)],
  [/articles/, (by) => send(by, 'PATCH /api/articles/1', { title: 'x' }, merge)],
  [/articles/, (by) => send(by, 'PATCH /api/articles', [retitle], jsonPatch)],
  // Over GraphQL: by HTTP, in a batch, and over a socket.
  [/author/, (by) => mutate(by, `mutation { createPost(createPostInput: ${texts}) }`)],
  [/comments/, ({ one }, { q }) => askGraphql(one, [{ query: comment(q) }])],
  [/comments/, ({ one }, { p }) => runOverSocket(one, comment(p))],
  // By a command, which changes no record that is read here.
  [undefined, ({ url }) => addAccount(url), true],
  // By a program that is not this one.
  [
    /comments/,
    ({ url }, ids) =>
      foreign(url, `UPDATE $comments SET content = 'in place' WHERE id = '${ids.comment}'`),
    true,
  ],
  [
    /author/,
    ({ url }, { author }) =>
      foreign(url, `UPDATE $authors SET name = 'New' WHERE id = '${author}'`),
    true,
  ],
  [
    /title/,
    ({ url }, { p }) => foreign(url, `UPDATE $posts SET title = 'z' WHERE id = '${p}'`),
    true,
  ],
  [/comments/, (by, ids) => send(by, `DELETE /comments/${ids.comment}`)],
  [/todos/, (by, { todo }) => send(by, `DELETE /api/todos/${todo}`)],
  [/posts/, ({ url }, { q }) => foreign(url, `DELETE FROM $posts WHERE id = '${q}'`), true],
  [/posts/, (by, { p }) => send(by, `DELETE /posts/${p}`)],
];

async function ask({ fetch, send: post }: TestServer, asked: string): Promise<string> {
  const query = { query: asked };
  const response = await (asked.startsWith('/') ? fetch(asked) : post('POST', '/graphql', query));
  return `${response.status} ${response.headers.get('link')} ${await response.text()}`;
}

async function begin(one: TestServer): Promise<readonly [string, Ids]> {
  const token = await logIn(one);
  const headers = { Authorization: `Bearer ${token}` };
  const make = async (path: string, body: object): Promise<string> =>
    (await one.make(path, body, headers)).split('/').at(-1) ?? '';
  const p = await make('/posts', { title: 'p', content: 'p' });
  const q = await make('/posts', { title: 'q', content: 'q' });
  const first = await make(`/posts/${p}/comments`, { content: 'c' });
  await make(`/posts/${q}/comments`, { content: 'd' });
  const todo = await make('/api/todos', { title: 't' });
  const { id: author } = await one.read<{ id: string }>('/profile', headers);
  return [token, { p, q, comment: first, todo, author }];
}

for (const { name, skip, newUrl } of stores) {
  it(`every read tells what is there, whoever wrote to a store ${name}`, { skip }, async (t) => {
    const url = await newUrl(t);
    const start = (env = {}) => startServer(t, { env: { STORE_URL: url, ...env } });
    const server = await start();
    const one = url.startsWith('postgres') ? await start() : server;
    const plain = url === 'memory:' ? server : await start({ RESPONSE_CACHE_BYTES_MAX: '0' });
    const [token, ids] = await begin(one);
    const reads = readsOf(ids);
    /** What was read last, and may be answered from the cache. */
    const before = new Map<string, string>();
    for (const each of reads) before.set(each, await ask(server, each));
    for (const [changed, write, isForeign] of writes) {
      if (isForeign === true && url === 'memory:') continue;
      await write({ one, url, token }, ids);
      const moved: string[] = [];
      for (const each of reads) {
        const seen = await ask(server, each);
        assert.equal(seen, await ask(plain, each), `${each} after ${String(write)}`);
        if (seen !== before.get(each)) moved.push(each);
        before.set(each, seen);
      }
      assert.equal(moved.length > 0, changed !== undefined, String(write));
      if (changed) assert.match(moved.join(), changed);
    }
  });
}
