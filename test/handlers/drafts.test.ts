/**
 * R44: for everybody but its author and administrators, a post that is not published does not
 * exist. Every request is sent with the ids of such a post and of one that was removed, by
 * everybody, over every transport; the responses must be the same. So must lists be before and
 * after there are such posts.
 */

import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import {
  type Blog,
  type Headers,
  insiders,
  openBlog,
  type Person,
  seen,
  strangers,
} from '../support/drafts.ts';
import { stores } from '../support/stores.ts';
import { connectReady } from '../support/ws-clients.ts';

/** A post and its comment. */
interface Named {
  readonly post: string;
  readonly comment: string;
}
interface Ids {
  /** They exist for the author and for administrators. */
  readonly hidden: readonly Named[];
  readonly removed: Named;
  readonly visible: Named;
  readonly author: string;
}

interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Headers;
}

const merge = { 'Content-Type': 'application/merge-patch+json' };
const json = { 'Content-Type': 'application/json' };
const texts = { title: 'x', content: 'y' };

/** Reads that name the post or its comment, and have to find them. */
const pathsOf = ({ post, comment }: Named): readonly string[] => [
  `/posts/${post}`,
  `/posts/${post.toUpperCase()}`,
  `/posts/${post}/comments`,
  `/posts/${post}/comments?limit=1`,
  `/posts/${post}/comments?limit=1&after=${comment}`,
  `/comments/${comment}`,
];
const queriesOf = ({ post, comment }: Named): readonly string[] => [
  `{ postById(postId: "${post}") { id title comments { id } author { posts { id } } } }`,
  `{ postById(postId: "${post}") { comments(first: 1, after: "${comment}") { id } } }`,
  `query Two { a: postById(postId: "${post}") { id } b: postById(postId: "${post}") { title } }`,
];

/** Lists, which name the post at most as a place. */
const listsOf = ({ visible, author }: Ids, after = ''): readonly string[] => {
  const at = after && `&after=${after}`;
  const filters = ['', '&status=DRAFT', '&status=PENDING_MODERATION', '&status=PUBLISHED'];
  return [
    ...filters.flatMap((filter) => [
      `/posts?limit=2${filter}${at}`,
      `/posts?limit=900${filter}${at}`,
    ]),
    ...filters.map((filter) => `/posts?author=${author}${filter}${at}`),
    ...(after === '' ? ['/posts'] : [`/posts?after=${after}`]),
    `/posts/${visible.post}/comments?limit=1${at}`,
  ];
};
const listQueriesOf = ({ visible, author }: Ids, after = ''): readonly string[] => {
  const at = after && `, after: "${after}"`;
  const own = `author: "${author}"`;
  const args = ['first: 2', 'first: 900', 'first: 1, status: DRAFT', `first: 9, ${own}`].concat(
    `first: 9, ${own}, status: DRAFT`,
  );
  return [
    ...args.map((each) => `{ allPosts(${each}${at}) { id status comments { id } } }`),
    `{ postById(postId: "${visible.post}") { author { posts(first: 2${at}) { id } } } }`,
    `{ postById(postId: "${visible.post}") { comments(first: 1${at}) { id } } }`,
  ];
};

/** Writes of a stranger. */
const mutationsOf = ({ post, comment }: Named): readonly string[] => [
  `mutation { updatePost(id: "${post}", changes: { status: PUBLISHED }) { id title } }`,
  `mutation { updatePost(id: "${post}", changes: { title: " " }) { id } }`,
  `mutation { deletePost(id: "${post}") }`,
  `mutation { deleteComment(id: "${comment}") }`,
  `mutation { addComment(commentInput: { postId: "${post}", content: "c" }) }`,
  `mutation { addComment(commentInput: { postId: "${post}", content: " " }) }`,
];
const writesOf = ({ post, comment }: Named): readonly Ask[] => [
  { method: 'PUT', path: `/posts/${post}`, body: texts, headers: json },
  { method: 'PUT', path: `/posts/${post}`, body: { title: 1 }, headers: json },
  { method: 'PUT', path: `/posts/${post}`, body: texts },
  { method: 'PATCH', path: `/posts/${post}`, body: { status: 'PUBLISHED' }, headers: merge },
  { method: 'PATCH', path: `/posts/${post}`, body: { status: 'no' }, headers: merge },
  { method: 'PATCH', path: `/posts/${post}`, body: {}, headers: json },
  { method: 'DELETE', path: `/posts/${post}` },
  { method: 'DELETE', path: `/comments/${comment}` },
  { method: 'POST', path: `/posts/${post}/comments`, body: { content: 'c' }, headers: json },
  { method: 'POST', path: `/posts/${post}/comments`, body: { content: ' ' }, headers: json },
  { method: 'POST', path: `/posts/${post}/comments`, body: {} },
];

/** A request of GraphQL, in each form over HTTP. */
const overHttp = (query: string): readonly Ask[] => {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query }));
  form.append('map', '{}');
  const one = { method: 'POST', path: '/graphql', headers: json };
  const isRead = !query.startsWith('mutation');
  return [
    { ...one, body: { query } },
    { ...one, body: { query }, headers: { ...json, Accept: 'application/graphql-response+json' } },
    { ...one, body: { query }, headers: { ...json, Accept: 'text/event-stream' } },
    { ...one, body: [{ query: '{ __typename }' }, { query }, { query }] },
    { method: 'POST', path: '/graphql', body: form },
    ...(isRead ? [{ method: 'GET', path: `/graphql?query=${encodeURIComponent(query)}` }] : []),
  ];
};

const conditions = (tag: string): readonly Headers[] => [
  { 'If-None-Match': tag },
  { 'If-Match': tag },
  { 'If-None-Match': '*' },
  { 'If-Match': '*' },
  { 'Idempotency-Key': 'one' },
  { Prefer: 'return=representation' },
];

const readsOf = (named: Named): readonly Ask[] => [
  ...pathsOf(named).flatMap((path) => ['GET', 'HEAD'].map((method) => ({ method, path }))),
  ...queriesOf(named).flatMap(overHttp),
];

/** Everything that names the post. */
function asksOf(ids: Ids, named: Named): readonly Ask[] {
  const lists = [...listsOf(ids, named.post), ...listsOf(ids, named.comment)];
  const queries = [...listQueriesOf(ids, named.post), ...mutationsOf(named)];
  return [
    ...readsOf(named),
    ...writesOf(named),
    ...lists.map((path) => ({ method: 'GET', path })),
    ...queries.flatMap(overHttp),
  ];
}

/** The same with conditions. `tag`: that of the hidden post, as its author has it. */
function conditionalOf(named: Named, tag: string): readonly Ask[] {
  const asks = [...writesOf(named), ...readsOf(named).filter(({ body }) => !body)];
  return asks.flatMap(({ headers, ...ask }) =>
    conditions(tag).map((condition) => ({ ...ask, headers: { ...headers, ...condition } })),
  );
}

async function fill(blog: Blog) {
  const add = async (post: string): Promise<Named> => ({
    post,
    comment: await blog.comment(post, 'c'),
  });
  const visible = await add(await blog.post('PUBLISHED'));
  for (let count = 0; count < 3; count += 1) await blog.post('PUBLISHED');
  const profile = await blog.one.fetch('/profile', { headers: blog.people.author });
  const { id: author } = (await profile.json()) as { readonly id: string };
  const ids = { visible, author, hidden: [], removed: visible };
  /** The lists of strangers, before there are drafts. */
  const lists = await readLists(blog, ids);
  const hidden = [
    await add(await blog.post('DRAFT')),
    await add(await blog.post('PENDING_MODERATION')),
  ];
  const ofAdmin = await blog.post('DRAFT', 'admin');
  const removed = await add(await blog.post('DRAFT'));
  await blog.remove(removed.post);
  return { ids: { ...ids, hidden, removed }, lists, ofAdmin };
}

async function readLists(blog: Blog, ids: Ids): Promise<readonly string[]> {
  const texts_: string[] = [];
  for (const person of strangers) {
    for (const path of listsOf(ids)) texts_.push(await send(blog, { method: 'GET', path }, person));
    for (const query of listQueriesOf(ids)) {
      for (const ask of overHttp(query)) texts_.push(await send(blog, ask, person));
    }
  }
  return texts_;
}

async function send(
  { nodes, people }: Blog,
  { method, path, body, headers }: Ask,
  person: Person,
  named?: Named,
): Promise<string> {
  const all = { ...headers, ...people[person] };
  const sent = body instanceof FormData ? body : JSON.stringify(body);
  const node = nodes[person === 'author' ? 0 : 1];
  const response = await node.fetch(path, {
    method,
    headers: all,
    ...(body ? { body: sent } : {}),
  });
  const { post = '', comment = '' } = named ?? {};
  const names = new Map(
    named && [
      [post, 'POST'],
      [post.toUpperCase(), 'POST'],
      [comment, 'COMMENT'],
    ],
  );
  return seen(response, names);
}

for (const place of stores) {
  for (const mode of ['owners', 'members']) {
    describe(`a draft, with ${mode}, on a store ${place.name}`, { skip: place.skip }, () => {
      const opened = {
        blog: undefined as unknown as Blog,
        filled: undefined as unknown as Awaited<ReturnType<typeof fill>>,
      };
      const endings: (() => Promise<void>)[] = [];
      before(async () => {
        const suite = { after: (end: () => Promise<void>) => void endings.unshift(end) };
        opened.blog = await openBlog(suite as TestContext, place, mode); // nothing else is used
        opened.filled = await fill(opened.blog);
      });
      after(async () => {
        for (const end of endings) await end();
      });

      it('is in no list, page or tag', async () => {
        const { blog, filled } = opened;
        for (let time = 0; time < 2; time += 1) {
          assert.deepEqual(await readLists(blog, filled.ids), filled.lists);
          await send(blog, { method: 'GET', path: '/posts' }, 'admin');
          await send(blog, { method: 'GET', path: '/posts?status=DRAFT' }, 'author');
        }
      });

      it('is as one that was removed, whatever is asked, and whoever has asked before', async () => {
        const { blog, filled } = opened;
        const { hidden, removed } = filled.ids;
        const [draft, pending] = hidden as [Named, Named];
        const own = await blog.one.fetch(`/posts/${draft.post}`, { headers: blog.people.author });
        const tag = own.headers.get('etag') ?? '';
        assert.match(tag, /^"/);
        // A token that is not valid is refused before anything is looked at.
        const known: readonly Person[] = mode === 'owners' ? ['anonymous', 'other'] : ['other'];
        for (const [people, named, toAsks] of [
          [strangers, draft, (each: Named) => asksOf(filled.ids, each)],
          [strangers, pending, readsOf],
          [known, draft, (each: Named) => conditionalOf(each, tag)],
        ] as const) {
          const absent = toAsks(removed);
          for (const [at, ask] of toAsks(named).entries()) {
            const title = `${ask.method} ${ask.path} ${JSON.stringify([ask.body, ask.headers])}`;
            if (/GET|HEAD/.test(ask.method)) await send(blog, ask, 'author', named);
            const compare = async (person: Person): Promise<void> => {
              const expected = await send(blog, absent[at] as Ask, person, removed);
              assert.equal(await send(blog, ask, person, named), expected, `${person}: ${title}`);
            };
            await Promise.all(people.map(compare));
          }
        }
      });

      it('is read by its author and by administrators, also when others have asked', async () => {
        const { blog, filled } = opened;
        const absent = readsOf(filled.ids.removed);
        for (const named of filled.ids.hidden) {
          for (const [at, ask] of readsOf(named).entries()) {
            for (const person of insiders) {
              await send(blog, ask, 'other', named);
              const found = await send(blog, ask, person, named);
              const missing = await send(blog, absent[at] as Ask, person, filled.ids.removed);
              assert.notEqual(found, missing, `${person}: ${ask.method} ${ask.path}`);
              assert.equal(await send(blog, ask, person, named), found);
            }
          }
        }
      });

      it('is in the lists of its author by its status, and in all of administrators', async () => {
        const { blog, filled } = opened;
        const [draft, pending] = filled.ids.hidden.map(({ post }) => post);
        const listed = async (person: Person, query: string): Promise<readonly string[]> => {
          const headers = blog.people[person];
          const rest = (await (await blog.one.fetch(`/posts${query}`, { headers })).json()) as {
            id: string;
          }[];
          return rest.map(({ id }) => id);
        };
        const { author } = filled.ids;
        assert.deepEqual(await listed('author', '?status=DRAFT'), [draft]);
        assert.deepEqual(await listed('author', '?status=PENDING_MODERATION'), [pending]);
        assert.deepEqual(await listed('author', `?status=DRAFT&author=${author}`), [draft]);
        assert.deepEqual(await listed('other', `?status=DRAFT&author=${author}`), []);
        assert.deepEqual(await listed('admin', '?status=DRAFT'), [filled.ofAdmin, draft]);
        assert.deepEqual(await listed('admin', `?status=DRAFT&author=${author}`), [draft]);
        assert.equal((await listed('admin', '')).length, 7);
        assert.equal((await listed('author', '')).length, 4);
        assert.equal((await listed('author', `?author=${author}`)).length, 4);
        assert.equal((await listed('other', '?status=PUBLISHED')).length, 4);
      });

      for (const protocol of ['graphql-transport-ws', 'graphql-ws']) {
        it(`is as one that was removed over a socket (${protocol})`, async () => {
          const { blog, filled } = opened;
          const type = protocol === 'graphql-ws' ? 'start' : 'subscribe';
          const { hidden, removed } = filled.ids;
          const named = hidden[0] as Named; // there are two
          const queries = (each: Named): readonly string[] => [
            ...queriesOf(each),
            ...mutationsOf(each),
            ...listQueriesOf(filled.ids, each.post),
            `subscription { commentAdded(after: "${each.comment}") { id } }`,
          ];
          const absent = queries(removed);
          for (const person of strangers) {
            const headers = blog.people[person];
            const client = await connectReady(blog.nodes[1].port, {
              protocols: [protocol],
              headers,
            });
            const ask = async (id: string, query: string, { post, comment }: Named) => {
              let text = '';
              for (let message = await client.ask({ id, type, payload: { query } }); ;) {
                text += JSON.stringify({ ...message, id: '' });
                if (message.type === 'complete' || message.type === 'error') break;
                message = await client.next();
              }
              return text.replaceAll(post, 'POST').replaceAll(comment, 'COMMENT');
            };
            for (const [at, query] of queries(named).entries()) {
              const expected = await ask(`a${at}`, absent[at] ?? '', removed);
              assert.equal(await ask(`h${at}`, query, named), expected, `${person}: ${query}`);
            }
            await client.close();
          }
        });
      }
    });
  }
}
