/** Comments of readers (R48): who may add them, with which names, and how many from an address. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { type Draft, type Door, doors, type Told } from '../support/comment-doors.ts';
import { type Blog, type Headers, openBlog, type Person } from '../support/drafts.ts';
import { times } from '../support/lists.ts';
import { nextOf } from '../support/resuming.ts';
import { askEvents } from '../support/sse-client.ts';
import { inMemory, stores } from '../support/stores.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

type Seen = Readonly<Record<string, unknown>>;

const idOf = (told: Told): string => ('id' in told ? told.id : assert.fail(told.refusal));

async function read(blog: Blog, path: string): Promise<unknown> {
  return (await blog.nodes[1].fetch(path)).json();
}
async function ask(blog: Blog, query: string, headers: Headers = {}): Promise<unknown> {
  const all = { 'Content-Type': 'application/json', ...headers };
  const body = JSON.stringify({ query });
  const response = await blog.one.fetch('/graphql', { method: 'POST', headers: all, body });
  return response.json();
}
const adding = (blog: Blog, post: string, as: Person = 'anonymous') => {
  return (door: Door | undefined, draft: Draft, headers: Headers = {}): Promise<Told> =>
    (door ?? assert.fail())(blog.one, {
      post,
      draft,
      headers: { ...blog.people[as], ...headers },
    });
};

const open = { env: { REQUIRE_AUTH: 'owners', COMMENTS: 'open' } };
const fields = 'id content name author { id name } status';

for (const place of stores) {
  describe(`a comment on a store ${place.name}`, { skip: place.skip }, () => {
    it('has the name that was given, and the account of its token, through every door', async (t) => {
      const blog = await openBlog(t, place, open);
      const post = await blog.post('PUBLISHED');
      const { id: author } = (await (
        await blog.one.fetch('/profile', { headers: blog.people.other })
      ).json()) as { readonly id: string };
      const writer = { id: author, name: 'other' };
      const expected: Seen[] = [];
      for (const [title, door] of Object.entries(doors)) {
        const nodes = blog.hearing;
        const heard = await Promise.all(nodes.map(async ({ port }) => listen(t, port)));
        for (const [person, name] of [
          ['anonymous', 'Ünal 🖋 ␚'],
          ['other', null],
        ] as const) {
          const content = `${title} ${person}`;
          const id = idOf(await adding(blog, post, person)(door, { content, name }));
          const by = person === 'anonymous' ? null : writer;
          const comment = { id, content, name, author: by, status: 'PUBLISHED' };
          expected.push(comment);
          for (const next of heard.flat()) assert.deepEqual(await next(), comment, content);
          const one = (await read(blog, `/comments/${id}`)) as Seen;
          const named =
            name === null ? ['id', 'content', 'post'] : ['id', 'content', 'post', 'name'];
          assert.deepEqual(Object.keys(one), named);
          assert.equal(one['name'] ?? null, name);
        }
      }
      const query = `{ postById(postId: "${post}") { comments { ${fields} } } }`;
      assert.deepEqual(await ask(blog, query), { data: { postById: { comments: expected } } });
      const listed = (await read(blog, `/posts/${post}/comments`)) as readonly Seen[];
      assert.deepEqual(
        listed.map(({ createdAt, ...rest }) => (assert.ok(createdAt), rest)),
        expected.map(({ id, content, name }) => ({ id, content, ...(name !== null && { name }) })),
      );
      // Who resumes reads the authors of what it has missed.
      const [first] = expected;
      const missed = await listen(t, blog.one.port, String(first?.['id']));
      for (const next of missed) {
        for (const comment of expected.slice(1)) assert.deepEqual(await next(), comment);
      }
    });
  });
}

/** What subscribers are told over a socket and an event stream. */
async function listen(t: TestContext, port: number, from?: string) {
  const args = from === undefined ? '' : `(after: "${from}")`;
  const query = `subscription { commentAdded${args} { ${fields} } }`;
  const client = await connectReady(port);
  t.after(() => client.socket.terminate());
  client.send(subscribe('1', query));
  // A result after it says that the subscription has begun.
  client.send(subscribe('2', '{ __typename }'));
  if (from === undefined) {
    for (const type of ['next', 'complete']) assert.equal((await client.next()).type, type);
  }
  const reader = await askEvents({ port }, query);
  t.after(() => void reader.leave());
  assert.equal(await reader.next(), ':');
  const overSocket = async (): Promise<unknown> => {
    for (;;) {
      const { id, payload } = await client.next();
      if (id === '1') return (payload as { data: { commentAdded: Seen } }).data.commentAdded;
    }
  };
  return [overSocket, async () => (await nextOf(reader)).told.data?.commentAdded as unknown];
}

describe('a comment', () => {
  it('needs a token or none, by the mode; one that is sent must be valid', async (t) => {
    const blogs: Record<string, readonly [string, string | undefined]> = {
      none: ['none', undefined],
      writes: ['writes', undefined],
      'open writes': ['writes', 'open'],
      owners: ['owners', undefined],
      'open owners': ['owners', 'open'],
      members: ['members', undefined],
    };
    for (const [mode, [auth, COMMENTS = 'accounts']] of Object.entries(blogs)) {
      const blog = await openBlog(t, inMemory, { env: { REQUIRE_AUTH: auth, COMMENTS } });
      const post = await blog.post('PUBLISHED');
      const isOpen = mode === 'none' || COMMENTS === 'open';
      for (const [title, door] of Object.entries(doors)) {
        for (const [person, isAllowed] of [
          ['anonymous', isOpen],
          ['other', true],
          ['expired', false],
          ['removed', false],
        ] as const) {
          const told = await adding(blog, post, person)(door, { content: 'c' });
          const refusal = title === 'REST' ? '401' : 'UNAUTHENTICATED';
          if (isAllowed) idOf(told);
          else assert.deepEqual(told, { refusal }, `${mode}, ${title}, ${person}`);
        }
      }
    }
  });

  it('is all that is written without a token', async (t) => {
    const blog = await openBlog(t, inMemory, open);
    const post = await blog.post('PUBLISHED');
    const add = `addComment(commentInput: { postId: "${post}", content: "c" })`;
    const create = 'createPost(createPostInput: { title: "t", content: "c" })';
    const told = await ask(blog, `mutation { a: ${add} ${create} b: ${add} }`);
    const { errors, data } = told as { data: unknown; errors: { path: string[] }[] };
    assert.equal(data, null);
    assert.deepEqual(
      errors.map(({ path }) => path),
      [['createPost']],
    );
    const posts = (await read(blog, '/posts')) as readonly unknown[];
    assert.equal(posts.length, 1);
    for (const [method, path] of [
      ['POST', '/posts'],
      ['DELETE', `/posts/${post}`],
      ['POST', '/api/todos'],
    ] as const) {
      const { status } = await blog.send(method, path, { as: 'anonymous', body: {} });
      assert.equal(status, 401, path);
    }
  });

  it('has a name of one line and at most 100 characters, where it has one', async (t) => {
    const blog = await openBlog(t, inMemory, 'none');
    const post = await blog.post('PUBLISHED');
    const add = adding(blog, post);
    for (const [title, door] of Object.entries(doors)) {
      const refusal = title === 'REST' ? '422' : 'BAD_USER_INPUT';
      for (const name of [
        '',
        ' ',
        '\u2003',
        'a\nb',
        'a\rb',
        'a\u2028b',
        'a\u0000',
        'a\tb',
        'x'.repeat(101),
        '🖋'.repeat(101),
        1,
        [],
      ]) {
        const told = await add(door, { content: 'c', name });
        assert.deepEqual(told, { refusal }, `${title}: ${JSON.stringify(name)}`);
      }
      for (const name of ['x', '🖋'.repeat(100), ' a ', '"\\', null, undefined]) {
        const id = idOf(await add(door, { content: 'c', name }));
        const one = (await read(blog, `/comments/${id}`)) as Seen;
        assert.equal(one['name'], name ?? undefined, title);
      }
    }
    // The post is looked up before the name is judged (R7, R24).
    const missing = adding(blog, '00000000-0000-7000-8000-0000000000ff');
    for (const [title, door] of Object.entries(doors)) {
      const refusal = title === 'REST' ? '404' : 'NOT_FOUND';
      assert.deepEqual(await missing(door, { content: 'c', name: '' }), { refusal }, title);
    }
  });

  it('is limited by address without a token, over all doors together', async (t) => {
    const settings = {
      COMMENTS: 'open',
      COMMENTS_PER_MINUTE_MAX: '3',
      TRUSTED_PROXIES: '127.0.0.1',
    };
    for (const REQUIRE_AUTH of ['writes', 'owners']) {
      const all = Object.entries(doors);
      for (const [at, [title, door]] of all.entries()) {
        const blog = await openBlog(t, inMemory, { env: { ...settings, REQUIRE_AUTH } });
        const post = await blog.post('PUBLISHED');
        const add = adding(blog, post);
        const from = (address: string): Headers => ({ 'X-Forwarded-For': address });
        const six = from('2001:db8:0:1::1');
        const missing = adding(blog, '00000000-0000-7000-8000-0000000000ff');
        // What stores nothing does not count.
        for (const _ of times(4)) {
          await missing(door, { content: 'c' }, six);
          await add(door, { content: ' ' }, six);
        }
        const keyed = { ...six, 'Idempotency-Key': 'a' };
        const first = await add(doors['REST'], { content: 'first' }, keyed);
        idOf(first);
        for (const [, other] of [all[at], all[(at + 1) % all.length]] as typeof all) {
          idOf(await add(other, { content: 'c' }, from('2001:db8:0:1:ffff::2')));
        }
        const refusal = title === 'REST' ? '429' : 'TOO_MANY_REQUESTS';
        assert.deepEqual(await add(door, { content: 'c' }, six), { refusal }, title);
        assert.deepEqual(await add(door, { content: 'c' }, from('2001:db8:0:1:1::')), { refusal });
        // A repetition, another network, and an account.
        assert.deepEqual(await add(doors['REST'], { content: 'first' }, keyed), first);
        idOf(await add(door, { content: 'c' }, from('2001:db8:0:2::1')));
        idOf(await add(door, { content: 'c' }, from('192.0.2.1')));
        idOf(await adding(blog, post, 'other')(door, { content: 'c' }, six));
        const refused = blog.one.logged.filter(({ event }) => event === 'comment refused');
        assert.ok(
          refused.length > 0 &&
            refused.every(({ client }) => String(client).startsWith('2001:db8:0:1:')),
        );
        assert.ok(blog.one.logged.every(({ event }) => event !== 'login refused'));
      }
    }
  });

  it('is admitted again after the time that a refusal names', async (t) => {
    const env = { ...open.env, COMMENTS_PER_MINUTE_MAX: '1' };
    let now = 0;
    const blog = await openBlog(t, inMemory, { env, monotonicNow: () => now });
    const post = await blog.post('PUBLISHED');
    const path = `/posts/${post}/comments`;
    const send = (): Promise<Response> =>
      blog.send('POST', path, { as: 'anonymous', body: { content: 'c' } });
    const query = `mutation { addComment(commentInput: { postId: "${post}", content: "c" }) }`;
    const Accept = 'application/graphql-response+json';
    assert.equal((await send()).status, 201);
    now = 20_500;
    const refused = await send();
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get('retry-after'), '40');
    assert.equal(((await refused.json()) as Seen)['code'], 'too_many_requests');
    const overGraphql = await blog.send('POST', '/graphql', {
      as: 'anonymous',
      headers: { Accept },
      body: { query },
    });
    assert.equal(overGraphql.status, 429);
    assert.equal(overGraphql.headers.get('retry-after'), '40');
    now = 60_000;
    assert.equal((await send()).status, 201);
  });
});
