/**
 * Cached responses that read single records, beside those of a server without a cache on the same
 * store: they are equal after each write, whoever wrote.
 */

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { post as askGraphql } from '../support/graphql-http.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { database } from '../support/shared-postgres.ts';
import { inSqlite } from '../support/sqlite.ts';
import { durableStores } from '../support/stores.ts';
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
  postOf(p),
  postOf(q),
  '{ allPosts(first: 2) { title author { name } comments { content } } }',
];

interface Writers {
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
type Write = readonly [RegExp | undefined, (writers: Writers, ids: Ids) => unknown];
const writes: readonly Write[] = [
  // Over REST.
  [/comments/, (by, { p }) => send(by, `POST /posts/${p}/comments`, { content: 'x' })],
  [/title/, (by, { p }) => send(by, `PUT /posts/${p}`, { title: 'x', content: 'x' })],
  [/limit/, (by, { q }) => send(by, `PATCH /posts/${q}`, { status: 'PUBLISHED' }, merge)],
  [/todos/, (by, { todo }) => send(by, `PATCH /api/todos/${todo}`, { completed: true }, merge)],
  [/articles/, (by) => send(by, 'PATCH /api/articles/1', { title: 'x' }, merge)],
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
  ],
  // By a program that is not this one.
  [
    /comments/,
    ({ url }, { comment }) =>
      foreign(url, `UPDATE $comments SET content = 'in place' WHERE id = '${comment}'`),
  ],
  [
    /author/,
    ({ url }, { author }) =>
      foreign(url, `UPDATE $authors SET name = 'New' WHERE id = '${author}'`),
  ],
  [/title/, ({ url }, { p }) => foreign(url, `UPDATE $posts SET title = 'z' WHERE id = '${p}'`)],
  [/comments/, (by, { comment }) => send(by, `DELETE /comments/${comment}`)],
  [/posts/, ({ url }, { q }) => foreign(url, `DELETE FROM $posts WHERE id = '${q}'`)],
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

for (const { name, skip, newUrl } of durableStores) {
  it(`every read tells what is there, whoever wrote to a store ${name}`, { skip }, async (t) => {
    const url = await newUrl(t);
    const one = await startServer(t, { env: { STORE_URL: url } });
    const plain = await startServer(t, { env: { STORE_URL: url, RESPONSE_CACHE_BYTES_MAX: '0' } });
    const [token, ids] = await begin(one);
    const reads = readsOf(ids);
    for (const [changed, write] of writes) {
      await t.test(String(write), async () => {
        const before = new Map<string, string>();
        for (const each of [...reads, ...reads]) before.set(each, await ask(one, each));
        await write({ one, url, token }, ids);
        const found = new Map<string, string>();
        for (const each of reads) {
          const [seen, expected] = [await ask(one, each), await ask(plain, each)];
          assert.equal(seen, expected, each);
          found.set(each, seen);
        }
        const moved = reads.filter((each) => found.get(each) !== before.get(each));
        assert.equal(moved.length > 0, changed !== undefined);
        if (changed) assert.match(moved.join(), changed);
      });
    }
  });
}
