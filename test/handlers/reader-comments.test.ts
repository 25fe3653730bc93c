/** Comments of readers (R48): who may add them, with which names, and how many from an address. */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { type Draft, type Door, doors, type Told } from '../support/comment-doors.ts';
import { type Blog, openBlog, type Person } from '../support/drafts.ts';
import { pluck, times } from '../support/lists.ts';
import { ask, read } from '../support/moderating.ts';
import { nextOf } from '../support/resuming.ts';
import type { Sent } from '../support/server.ts';
import { askEvents } from '../support/sse-client.ts';
import { inMemory, stores } from '../support/stores.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';

type Seen = Readonly<Record<string, unknown>>;

const idOf = (told: Told): string => ('id' in told ? told.id : assert.fail(told.refusal));

const adding = (blog: Blog, post: string, as: Person = 'anonymous') => {
  return (door: Door | undefined, draft: Draft, more: Sent = {}): Promise<Told> => {
    const headers = { ...blog.people[as], ...more };
    return (door ?? assert.fail())(blog.one, { post, draft, headers });
  };
};

const open = { env: { REQUIRE_AUTH: 'owners', COMMENTS: 'open' } };
const all = Object.entries(doors);
const fields = 'id content name author { id name } status';
const missing = '00000000-0000-7000-8000-0000000000ff';

for (const place of stores) {
  const title = `a comment on a store ${place.name} has the name that was given, and its account`;
  it(title, { skip: place.skip }, async (t) => {
    const blog = await openBlog(t, place, open);
    const post = await blog.post('PUBLISHED');
    const { id } = await blog.one.read<{ id: string }>('/profile', blog.people.other);
    const writer = { id, name: 'other' };
    const expected: Seen[] = [];
    for (const [door, add] of all) {
      const heard = await Promise.all(blog.hearing.map(async ({ port }) => listen(t, port)));
      for (const [person, name, author] of [
        ['anonymous', 'Ünal 🖋 ␚', null],
        ['other', null, writer],
      ] as const) {
        const content = `${door} ${person}`;
        const made = idOf(await adding(blog, post, person)(add, { content, name }));
        const comment = { id: made, content, name, author, status: 'PUBLISHED' };
        expected.push(comment);
        for (const next of heard.flat()) assert.deepEqual(await next(), comment, content);
        const one = (await read(blog, `/comments/${made}`)) as Seen;
        const members = ['id', 'content', 'post', ...(name === null ? [] : ['name'])];
        assert.deepEqual([Object.keys(one), one['name'] ?? null], [members, name]);
      }
    }
    const query = `{ postById(postId: "${post}") { comments { ${fields} } } }`;
    const { data } = await ask(blog, query, 'anonymous');
    assert.deepEqual(data, { postById: { comments: expected } });
    const listed = (await read(blog, `/posts/${post}/comments`)) as readonly Seen[];
    assert.deepEqual(
      pluck(listed, 'name'),
      expected.map(({ name }) => name ?? undefined),
    );
    // Who resumes reads the authors of what it has missed.
    for (const next of await listen(t, blog.one.port, String(expected[0]?.['id']))) {
      for (const comment of expected.slice(1)) assert.deepEqual(await next(), comment);
    }
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
    for (const [REQUIRE_AUTH, COMMENTS, isOpen] of [
      ['none', 'accounts', true],
      ['writes', 'accounts', false],
      ['writes', 'open', true],
      ['owners', 'accounts', false],
      ['owners', 'open', true],
      ['members', 'accounts', false],
    ] as const) {
      const blog = await openBlog(t, inMemory, { env: { REQUIRE_AUTH, COMMENTS } });
      const post = await blog.post('PUBLISHED');
      for (const [title, door] of all) {
        for (const [person, isAllowed] of [
          ['anonymous', isOpen],
          ['other', true],
          ['expired', false],
          ['removed', false],
        ] as const) {
          const told = await adding(blog, post, person)(door, { content: 'c' });
          const refusal = title === 'REST' ? '401' : 'UNAUTHENTICATED';
          if (isAllowed) idOf(told);
          else assert.deepEqual(told, { refusal }, `${REQUIRE_AUTH}, ${title}, ${person}`);
        }
      }
    }
  });

  it('is all that is written without a token', async (t) => {
    const blog = await openBlog(t, inMemory, open);
    const post = await blog.post('PUBLISHED');
    const add = `addComment(commentInput: { postId: "${post}", content: "c" })`;
    const create = 'createPost(createPostInput: { title: "t", content: "c" })';
    const told = await ask(blog, `mutation { a: ${add} ${create} b: ${add} }`, 'anonymous');
    const { errors, data } = told as { data: unknown; errors: { path: string[] }[] };
    assert.deepEqual([data, pluck(errors, 'path')], [null, [['createPost']]]);
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
    const add = adding(blog, await blog.post('PUBLISHED'));
    const ofMissing = adding(blog, missing);
    const lines = ['a\nb', 'a\rb', 'a\u2028b', 'a\u0000', 'a\tb'];
    const wrong = ['', ' ', '\u2003', ...lines, 'x'.repeat(101), '🖋'.repeat(101), 1, []];
    for (const [title, door] of all) {
      const [refusal, lost] = title === 'REST' ? ['422', '404'] : ['BAD_USER_INPUT', 'NOT_FOUND'];
      for (const name of wrong) {
        const told = await add(door, { content: 'c', name });
        assert.deepEqual(told, { refusal }, `${title}: ${JSON.stringify(name)}`);
      }
      // The post is looked up before the name is judged (R7, R24).
      assert.deepEqual(await ofMissing(door, { content: 'c', name: '' }), { refusal: lost }, title);
      for (const name of ['x', '🖋'.repeat(100), ' a ', '"\\', null, undefined]) {
        const id = idOf(await add(door, { content: 'c', name }));
        const one = (await read(blog, `/comments/${id}`)) as Seen;
        assert.equal(one['name'], name ?? undefined, title);
      }
    }
  });

  it('is limited by address without a token, over all doors together', async (t) => {
    const limits = { COMMENTS_PER_MINUTE_MAX: '3', TRUSTED_PROXIES: '127.0.0.1' };
    for (const [at, [title, door]] of all.entries()) {
      const REQUIRE_AUTH = at % 2 === 0 ? 'writes' : 'owners';
      const env = { COMMENTS: 'open', ...limits, REQUIRE_AUTH };
      const blog = await openBlog(t, inMemory, { env });
      const post = await blog.post('PUBLISHED');
      const add = adding(blog, post);
      const from = (address: string): Sent => ({ 'X-Forwarded-For': address });
      const six = from('2001:db8:0:1::1');
      // What stores nothing does not count.
      for (const _ of times(4)) {
        await adding(blog, missing)(door, { content: 'c' }, six);
        await add(door, { content: ' ' }, six);
      }
      const keyed = { ...six, 'Idempotency-Key': 'a' };
      const first = await add(doors['REST'], { content: 'first' }, keyed);
      idOf(first);
      for (const other of [door, all[(at + 1) % all.length]?.[1]]) {
        idOf(await add(other, { content: 'c' }, from('2001:db8:0:1:ffff::2')));
      }
      const refusal = title === 'REST' ? '429' : 'TOO_MANY_REQUESTS';
      for (const address of ['2001:db8:0:1::1', '2001:db8:0:1:1::']) {
        assert.deepEqual(await add(door, { content: 'c' }, from(address)), { refusal }, title);
      }
      // A repetition, another network, and an account.
      assert.deepEqual(await add(doors['REST'], { content: 'first' }, keyed), first);
      for (const address of ['2001:db8:0:2::1', '192.0.2.1']) {
        idOf(await add(door, { content: 'c' }, from(address)));
      }
      idOf(await adding(blog, post, 'other')(door, { content: 'c' }, six));
      const refused = blog.one.logged.filter(({ event }) => event.endsWith('refused'));
      assert.ok(refused.length > 0);
      for (const { event, client } of refused) {
        assert.match(`${event} ${String(client)}`, /^comment refused 2001:db8:0:1:/);
      }
    }
  });

  it('is admitted again after the time that a refusal names', async (t) => {
    const env = { ...open.env, COMMENTS_PER_MINUTE_MAX: '1' };
    let now = 0;
    const blog = await openBlog(t, inMemory, { env, monotonicNow: () => now });
    const post = await blog.post('PUBLISHED');
    const send = (): Promise<Response> =>
      blog.send('POST', `/posts/${post}/comments`, { as: 'anonymous', body: { content: 'c' } });
    const query = `mutation { addComment(commentInput: { postId: "${post}", content: "c" }) }`;
    const headers = { Accept: 'application/graphql-response+json' };
    assert.equal((await send()).status, 201);
    now = 20_500;
    const asked = { as: 'anonymous', headers, body: { query } } as const;
    for (const refused of [await blog.send('POST', '/graphql', asked), await send()]) {
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '40']);
      assert.match(await refused.text(), /"code":"too_many_requests"/i);
    }
    now = 60_000;
    assert.equal((await send()).status, 201);
  });
});
