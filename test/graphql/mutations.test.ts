/** Changing and removing in GraphQL, and `me`: the rules, owners and errors of REST (R46). */

import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import { codes, get, post } from '../support/graphql-http.ts';
import { logIn } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';

type Headers = Readonly<Record<string, string>>;

const missing = '00000000-0000-7000-8000-0000000000ff';
const changePost =
  'mutation ($id: ID!, $changes: UpdatePostInput!) ' +
  '{ updatePost(id: $id, changes: $changes) { id title content status } }';
const deletePost = 'mutation ($id: ID!) { deletePost(id: $id) }';
const deleteComment = 'mutation ($id: ID!) { deleteComment(id: $id) }';
const me = '{ me { id username email roles } }';

async function createPost(server: TestServer, headers: Headers = {}): Promise<string> {
  const query = 'mutation { createPost(createPostInput: {title: "t", content: "c"}) }';
  const { body } = await post(server, { query }, headers);
  return (body as { data: { createPost: string } }).data.createPost;
}

async function addComment(server: TestServer, id: string, headers: Headers = {}): Promise<string> {
  const query = `mutation { addComment(commentInput: {postId: "${id}", content: "c"}) }`;
  const { body } = await post(server, { query }, headers);
  return (body as { data: { addComment: string } }).data.addComment;
}

async function read(server: TestServer, path: string): Promise<unknown> {
  const response = await server.fetch(path);
  return response.status === 200 ? response.json() : response.status;
}

describe('updatePost', { concurrency: true }, () => {
  it('changes the given members alone, and returns the post (R37)', async (t) => {
    const server = await startServer(t);
    const id = await createPost(server);
    const before = (await read(server, `/posts/${id}`)) as object;
    const ask = async (given: string, changes: object) =>
      (await post(server, { query: changePost, variables: { id: given, changes } })).body;
    const status = 'PUBLISHED';
    const updatePost = { id, title: 'T', content: 'c', status };
    for (const [given, changes] of [[id.toUpperCase(), { status }] as const, [id, {}] as const]) {
      assert.deepEqual(await ask(given, changes), { data: { updatePost } });
      assert.deepEqual(await read(server, `/posts/${id}`), { ...before, status });
    }
    const texts = { title: 'new', content: 'text' };
    assert.deepEqual(codes(await ask(id, texts)), []);
    assert.deepEqual(await read(server, `/posts/${id}`), { ...before, ...texts, status });
  });

  it('refuses blank texts, other words and posts that do not exist', async (t) => {
    const server = await startServer(t);
    const id = await createPost(server);
    const before = await read(server, `/posts/${id}`);
    const texts = [{ title: ' ' }, { title: 'new', content: '' }];
    for (const changes of [...texts, { status: 'GONE' }, { authorId: missing }]) {
      const { body } = await post(server, { query: changePost, variables: { id, changes } });
      assert.deepEqual(codes(body), ['BAD_USER_INPUT'], JSON.stringify(changes));
    }
    assert.deepEqual(await read(server, `/posts/${id}`), before);
    for (const other of [missing, 'none', '']) {
      // That there is no such post is said first.
      for (const title of ['new', ' ']) {
        const variables = { id: other, changes: { title } };
        const { body } = await post(server, { query: changePost, variables });
        assert.deepEqual(codes(body), ['NOT_FOUND'], title);
      }
    }
  });
});

test('deletePost removes a post with its comments, deleteComment one comment (R7)', async (t) => {
  const server = await startServer(t);
  const id = await createPost(server);
  const [first, second] = [await addComment(server, id), await addComment(server, id)];
  const ask = async (query: string, given: string) =>
    (await post(server, { query, variables: { id: given } })).body;
  assert.deepEqual(await ask(deleteComment, first), { data: { deleteComment: first } });
  assert.equal(await read(server, `/comments/${first}`), 404);
  assert.notEqual(await read(server, `/comments/${second}`), 404);
  assert.deepEqual(codes(await ask(deleteComment, first)), ['NOT_FOUND']);
  assert.deepEqual(await ask(deletePost, id), { data: { deletePost: id } });
  for (const path of [`/posts/${id}`, `/comments/${second}`]) {
    assert.equal(await read(server, path), 404, path);
  }
  for (const given of [id, missing, 'none']) {
    assert.deepEqual(codes(await ask(deletePost, given)), ['NOT_FOUND'], given);
    assert.deepEqual(codes(await ask(deleteComment, given)), ['NOT_FOUND'], given);
  }
});

test('with owners, only the author and ADMIN change and remove (R36)', async (t) => {
  const server = await startServer(t, { env: { REQUIRE_AUTH: 'owners' } });
  const bearer = async (name: string): Promise<Headers> => ({
    Authorization: `Bearer ${await logIn(server, name)}`,
  });
  const [user, admin] = [await bearer('user'), await bearer('admin')];
  const publish = async (id: string, headers: Headers) => {
    const variables = { id, changes: { status: 'PUBLISHED' } };
    return (await post(server, { query: changePost, variables }, headers)).body;
  };
  const ofAdmin = await createPost(server, admin);
  assert.deepEqual(codes(await publish(ofAdmin, admin)), []);
  const comment = await addComment(server, ofAdmin, user);
  for (const [query, id] of [
    [changePost, ofAdmin],
    [deletePost, ofAdmin],
    [deleteComment, comment],
  ] as const) {
    const variables = { id, changes: { title: ' ' } };
    for (const [headers, code] of [
      [user, 'FORBIDDEN'],
      [{}, 'UNAUTHENTICATED'],
      [{ Authorization: 'Bearer x.y.z' }, 'UNAUTHENTICATED'],
    ] as const) {
      const { body } = await post(server, { query, variables }, headers);
      assert.deepEqual(codes(body), [code], query);
    }
  }
  assert.notEqual(await read(server, `/comments/${comment}`), 404);
  const ofUser = await createPost(server, user);
  assert.deepEqual(codes(await publish(ofUser, user)), []);
  const own = await addComment(server, ofUser, admin);
  for (const [query, id, headers] of [
    [deleteComment, own, user],
    [deletePost, ofUser, admin],
    [deletePost, ofAdmin, admin],
  ] as const) {
    const { body } = await post(server, { query, variables: { id } }, headers);
    assert.deepEqual(codes(body), [], query);
  }
});

for (const REQUIRE_AUTH of ['none', 'owners', 'members']) {
  test(`me is the account of the token, also where others ask the same (${REQUIRE_AUTH})`, async (t) => {
    const server = await startServer(t, { env: { REQUIRE_AUTH } });
    const meOf = (body: unknown): unknown => (body as { data?: { me: unknown } }).data?.me;
    const asked: [Headers, unknown][] = [[{}, REQUIRE_AUTH === 'members' ? undefined : null]];
    for (const name of ['user', 'admin']) {
      const headers = { Authorization: `Bearer ${await logIn(server, name)}` };
      asked.push([headers, await (await server.fetch('/profile', { headers })).json()]);
    }
    const search = new URLSearchParams({ query: me }).toString();
    for (const [headers, profile] of [...asked, ...asked]) {
      for (const query of ['{ me { id username email roles } allPosts(first: 1) { id } }', me]) {
        assert.deepEqual(meOf((await post(server, { query }, headers)).body), profile, query);
      }
      const byGet = await server.fetch(`/graphql?${search}`, { headers });
      assert.deepEqual(meOf(await byGet.json()), profile);
    }
    const refused = await post(server, { query: me }, { Authorization: 'Bearer x.y.z' });
    assert.deepEqual(codes(refused.body), ['UNAUTHENTICATED']);
    const secret = await get(server, { query: '{ me { passwordHash } }' });
    assert.match(JSON.stringify(secret.body), /GRAPHQL_VALIDATION_FAILED|UNAUTHENTICATED/);
  });
}
