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

const json = { 'Content-Type': 'application/json' };
const merge = { 'Content-Type': 'application/merge-patch+json' };

/** `more`: the body, and a media type if it is not JSON. */
const send = ({ one, token }: Writers, target: string, ...more: readonly [object?, object?]) => {
  const [method = '', path = ''] = target.split(' ');
  const [body, type = json] = more;
  return one.fetch(path, {
    method,
    headers: { ...type, Authorization: `Bearer ${token}` },
    ...(body && { body: JSON.stringify(body) }),
  });
};
const mutate = ({ one, token }: Writers, query: string) =>
  askGraphql(one, { query }, { Authorization: `Bearer ${token}` });

/** By another program than this service; `$` is the prefix of tables. */
const foreign = (url: string, text: string): unknown =>
  url.startsWith('sqlite:')
    ? inSqlite(decodeURI(url.slice('sqlite://'.length)), (file) => {
        file.exec(`PRAGMA foreign_keys = ON; ${text.replaceAll('$', '')}`);
      })
    : database.query(url, text.replaceAll('$', 'inkwell.'));

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
  [
    /articles/,
    (by) => {
      const type = { 'Content-Type': 'application/json-patch+json' };
      const operation = { op: 'replace', path: '/0/title', value: 'y' };
      return send(by, 'PATCH /api/articles', [operation], type);
    },
  ],
  // Over GraphQL: by HTTP, in a batch, and over a socket.
  [
    /author/,
    (by) => mutate(by, 'mutation { createPost(createPostInput: { title: "y", content: "y" }) }'),
  ],
  [
    /comments/,
    ({ one }, { q }) => {
      const comment = `commentInput: { postId: "${q}", content: "y" }`;
      return askGraphql(one, [{ query: `mutation { addComment(${comment}) }` }]);
    },
  ],
  [
    /comments/,
    async ({ one }, { p }) => {
      const { client, run } = modernClient(one.port);
      await run(`mutation { addComment(commentInput: { postId: "${p}", content: "z" }) }`);
      await client.dispose();
    },
  ],
  // By a command, which changes no record that is read here.
  [
    undefined,
    async ({ url }) => {
      const args = ['accounts', 'add', 'ann', '--email', 'ann@example.org'];
      const given = { env: { STORE_URL: url }, input: 'a jar of black ink\n' };
      assert.equal((await runCommandHere(args, given)).code, 0);
    },
    true,
  ],
  // By a program that is not this one.
  [
    /comments/,
    ({ url }, { comment }) =>
      foreign(url, `UPDATE $comments SET content = 'in place' WHERE id = '${comment}'`),
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
  [/comments/, (by, { comment }) => send(by, `DELETE /comments/${comment}`)],
  [/todos/, (by, { todo }) => send(by, `DELETE /api/todos/${todo}`)],
  [/posts/, ({ url }, { q }) => foreign(url, `DELETE FROM $posts WHERE id = '${q}'`), true],
  [/posts/, (by, { p }) => send(by, `DELETE /posts/${p}`)],
];

async function ask({ fetch }: TestServer, asked: string): Promise<string> {
  const init = { method: 'POST', body: JSON.stringify({ query: asked }), headers: json };
  const response = await (asked.startsWith('/') ? fetch(asked) : fetch('/graphql', init));
  return `${response.status} ${response.headers.get('link')} ${await response.text()}`;
}

async function begin(one: TestServer): Promise<readonly [string, Ids]> {
  const token = await logIn(one);
  const by = { one, token, url: '' };
  const created = async (path: string, body: object): Promise<string> =>
    (await send(by, `POST ${path}`, body)).headers.get('location')?.split('/').at(-1) ?? '';
  const p = await created('/posts', { title: 'p', content: 'p' });
  const q = await created('/posts', { title: 'q', content: 'q' });
  const comment = await created(`/posts/${p}/comments`, { content: 'c' });
  await created(`/posts/${q}/comments`, { content: 'd' });
  const todo = await created('/api/todos', { title: 't' });
  const { body } = await askGraphql(one, {
    query: `{ postById(postId: "${p}") { author { id } } }`,
  });
  const { data } = body as { data: { postById: { author: { id: string } } } };
  return [token, { p, q, comment, todo, author: data.postById.author.id }];
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
    for (const [changed, write, isForeign] of writes) {
      if (isForeign === true && url === 'memory:') continue;
      await t.test(String(write), async () => {
        const before = new Map<string, string>();
        for (const each of [...reads, ...reads]) before.set(each, await ask(server, each));
        await write({ one, url, token }, ids);
        const moved: string[] = [];
        for (const each of reads) {
          const seen = await ask(server, each);
          assert.equal(seen, await ask(plain, each), each);
          if (seen !== before.get(each)) moved.push(each);
        }
        assert.equal(moved.length > 0, changed !== undefined);
        if (changed) assert.match(moved.join(), changed);
      });
    }
  });
}
