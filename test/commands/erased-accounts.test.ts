/** What `accounts remove --erase` leaves (R51): no name and no address, wherever one looks. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { post } from '../support/graphql-http.ts';
import { file, form } from '../support/files.ts';
import { askLogin, logIn } from '../support/login.ts';
import { routes } from '../support/reference.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { durableStores } from '../support/stores.ts';
import { createDirectory } from '../support/uploads.ts';

const name = 'Wilhelmine';
const email = 'wilhelmine@example.org';
const password = 'a jar of black ink';

type Ids = Readonly<Record<'posts' | 'comments', readonly string[]>>;

/** All that the account can leave: records with and without its name, in every status. */
async function write(server: TestServer, token: string): Promise<Ids> {
  const headers = { Authorization: `Bearer ${token}` };
  const mutate = async (mutation: string): Promise<string> => {
    const { body } = await post(server, { query: `mutation { id: ${mutation} }` }, headers);
    return (body as { data: { id: string } }).data.id;
  };
  const posts: string[] = [];
  for (const status of ['DRAFT', 'PUBLISHED', 'PENDING_MODERATION']) {
    const id = await mutate('createPost(createPostInput: {title: "a", content: "b"})');
    await mutate(`updatePost(id: "${id}", changes: {status: ${status}}) { id }`);
    posts.push(id);
  }
  const comments: string[] = [];
  for (const named of [`, name: "${name}"`, `, name: "Aunt ${name}"`, '']) {
    const input = `{postId: "${posts[1]}", content: "c"${named}}`;
    comments.push(await mutate(`addComment(commentInput: ${input})`));
  }
  const body = form({ a: file('text', 'a.txt') });
  const stored = await server.fetch('/api/multiparts/list', { method: 'POST', headers, body });
  assert.equal(stored.status, 200);
  return { posts, comments };
}

const fields = `id title rawTitle content status createdAt publishedAt authorId
  author { id name email posts { id } }
  comments { id content name createdAt postId author { id name email posts { id } } }`;

/** All that is shown: every route that reads, whatever it answers, and GraphQL. */
async function readAll(server: TestServer, { posts, comments }: Ids, headers: object) {
  const seen: string[] = [];
  const add = async (path: string): Promise<void> => {
    const response = await server.fetch(path, { headers: { ...headers } });
    const shown = [response.status, [...response.headers], await response.text()];
    seen.push(`${path} ${JSON.stringify(shown)}`);
  };
  for (const { method, path } of routes) {
    if (method !== 'GET') continue;
    const ids = path.startsWith('/comments') ? comments : posts;
    const paths = path.includes('{id}') ? ids.map((id) => path.replace('{id}', id)) : [path];
    for (const each of paths) {
      await add(each.replace('{name}', 'a.txt').replace('/*', '/index.html'));
    }
  }
  for (const path of ['/posts', `/posts/${posts[1]}/comments`, '/files']) {
    for (const query of ['limit=1', 'status=DRAFT', `after=${comments[0]}`, `after=${posts[0]}`]) {
      await add(`${path}?${query}`);
    }
  }
  const each = posts.map((id) => `{ postById(postId: "${id}") { ${fields} } }`);
  for (const query of [`{ allPosts { ${fields} } me { username email } }`, ...each]) {
    seen.push(JSON.stringify(await post(server, { query }, { ...headers })));
    await add(`/graphql?query=${encodeURIComponent(query)}`);
  }
  return seen;
}

const holds = (text: string): boolean => /wilhelmine/i.test(text);

for (const { name: place, skip, newUrl } of durableStores) {
  test(`an erased account is named nowhere any more, ${place}`, { skip }, async (t) => {
    const folder = await createDirectory(t);
    const tokens = { JWT_SECRET: 's'.repeat(32), TOKEN_TTL_SECONDS: '3600' };
    const modes = { REQUIRE_AUTH: 'owners', LOG_REQUESTS: 'all', ADMIN_PORT: '0' };
    const env = { STORE_URL: await newUrl(t), UPLOAD_DIR: folder, ...tokens, ...modes };
    const add = ['accounts', 'add', name, '--email', email, '--role', 'USER'];
    assert.equal((await runCommandHere(add, { env, input: `${password}\n` })).code, 0);
    const server = await startServer(t, { env });
    const token = await logIn(server, name, password);
    const headers = { Authorization: `Bearer ${token}` };
    const ids = await write(server, token);
    const admin = { Authorization: `Bearer ${await logIn(server, 'admin')}` };
    const profile = await server.fetch('/profile', { headers });
    const { id } = (await profile.json()) as { readonly id: string };
    const before = await readAll(server, ids, admin);
    assert.ok(before.filter(holds).length > 5);
    assert.ok(server.logged.some((line) => holds(JSON.stringify(line))));

    const erased = await runCommandHere(['accounts', 'remove', name, '--erase'], { env });
    assert.deepEqual([erased.code, erased.output], [0, `Erased "${name}".\n`]);
    server.logged.length = 0;
    const after: string[] = [];
    for (const who of [admin, {}, headers]) after.push(...(await readAll(server, ids, who)));
    after.push(await server.metrics());
    for (const command of ['export', 'accounts list']) {
      const { code, output, errors } = await runCommandHere(command.split(' '), { env });
      assert.deepEqual([code, errors.includes('Error')], [0, false], errors);
      after.push(output, errors);
    }
    // What the account could do, and cannot.
    for (const path of [`/posts/${ids.posts[0]}`, `/comments/${ids.comments[0]}`]) {
      const refused = await server.fetch(path, { method: 'DELETE', headers });
      assert.equal(refused.status, 401);
    }
    assert.equal((await askLogin(server, name, password)).status, 401);
    after.push(...server.logged.map((line) => JSON.stringify(line)));
    assert.ok(server.logged.length > 50);
    // Neither its id, which is derived from the name.
    const naming = after.filter((text) => holds(text) || text.includes(id));
    assert.deepEqual(naming, []);

    // What it has written is there, and belongs to nobody.
    const { body } = await post(server, { query: `{ allPosts { id authorId } }` }, admin);
    const { allPosts } = (body as { data: { allPosts: { id: string; authorId: unknown }[] } }).data;
    for (const each of ids.posts) {
      assert.equal(allPosts.find((found) => found.id === each)?.authorId, null);
    }
    // The same name is another author, who has none of it.
    assert.equal((await runCommandHere(add, { env, input: `${password}\n` })).code, 0);
    const again = { Authorization: `Bearer ${await logIn(server, name, password)}` };
    const own = await server.fetch(`/posts?author=${id}&status=DRAFT`, { headers: again });
    assert.deepEqual(await own.json(), []);
    for (const path of [`/posts/${ids.posts[1]}`, `/api/multiparts/a.txt`]) {
      const refused = await server.fetch(path, { method: 'DELETE', headers: again });
      assert.equal(refused.status, 403, path);
    }
  });
}
