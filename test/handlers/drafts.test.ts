/**
 * R44: for everybody but its author and administrators, a post that is not published does not
 * exist. Every request is sent with the ids of such a post and of one that was removed, by
 * everybody, over every transport; the responses must be the same. So must lists be before and
 * after there are such posts.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Ask,
  asksOf,
  conditionalOf,
  type Ids,
  listQueriesOf,
  listsOf,
  mutationsOf,
  type Named,
  overHttp,
  queriesOf,
  readsOf,
} from '../support/draft-asks.ts';
import {
  type Blog,
  insiders,
  inTurn,
  type Names,
  openBlog,
  openSocket,
  type Person,
  sendAs,
  strangers,
  useBlog,
} from '../support/drafts.ts';
import { isLong } from '../support/long.ts';
import { stores } from '../support/stores.ts';

/**
 * How many questions there are for one that is asked: of the store in memory each is asked, of
 * other stores and in the other mode each at length.
 */
type Share = 1 | 3;

/** Those whose token is refused before anything is looked at ask only at length. */
const asking: readonly Person[] = isLong ? strangers : ['anonymous', 'other'];

async function fill(blog: Blog, share: Share) {
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
  const lists = await readLists(blog, ids, share);
  const hidden = [
    await add(await blog.post('DRAFT')),
    await add(await blog.post('PENDING_MODERATION')),
  ];
  const ofAdmin = await blog.post('DRAFT', 'admin');
  const removed = await add(await blog.post('DRAFT'));
  await blog.remove(removed.post);
  return { ids: { ...ids, hidden, removed }, lists, ofAdmin };
}

async function readLists(blog: Blog, ids: Ids, share: Share): Promise<readonly string[]> {
  const listed: string[] = [];
  const asks: readonly Ask[] = [
    ...listsOf(ids).map((path) => ({ method: 'GET', path })),
    ...listQueriesOf(ids).flatMap(overHttp),
  ];
  for (const [at, ask] of asks.entries()) {
    if (at % share > 0) continue;
    for (const person of inTurn(asking, at)) listed.push(await sendAs(blog, ask, person));
  }
  return listed;
}

const namesOf = ({ post, comment }: Named): Names => ({ [post]: 'POST', [comment]: 'COMMENT' });

for (const place of stores) {
  // The modes differ before the store is asked.
  for (const mode of isLong || place.name === 'in memory' ? ['owners', 'members'] : ['owners']) {
    const share: Share = isLong || (place.name === 'in memory' && mode === 'owners') ? 1 : 3;
    describe(`a draft, with ${mode}, on a store ${place.name}`, { skip: place.skip }, () => {
      const opened = useBlog(
        (suite) => openBlog(suite, place, mode),
        (blog) => fill(blog, share),
      );

      it('is in no list, page or tag', async () => {
        const { blog, filled } = opened;
        for (let time = 0; time < 2; time += 1) {
          assert.deepEqual(await readLists(blog, filled.ids, share), filled.lists, `time ${time}`);
          await sendAs(blog, { method: 'GET', path: '/posts' }, 'admin');
          await sendAs(blog, { method: 'GET', path: '/posts?status=DRAFT' }, 'author');
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
          [asking, draft, (each: Named) => asksOf(filled.ids, each)],
          [asking, pending, readsOf],
          [known, draft, (each: Named) => conditionalOf(each, tag)],
        ] as const) {
          const absent = toAsks(removed);
          // Those with conditions are six of each: a third of them, of every kind, in turn.
          const every = people === known && !isLong ? 3 : share;
          for (const [at, ask] of toAsks(named).entries()) {
            if ((at + Math.floor(at / 6)) % every > 0) continue;
            const title = `${ask.method} ${ask.path} ${JSON.stringify([ask.body, ask.headers])}`;
            if (/GET|HEAD/.test(ask.method)) await sendAs(blog, ask, 'author', namesOf(named));
            const compare = async (person: Person): Promise<void> => {
              const expected = await sendAs(blog, absent[at] as Ask, person, namesOf(removed));
              assert.equal(
                await sendAs(blog, ask, person, namesOf(named)),
                expected,
                `${person}: ${title}`,
              );
            };
            await Promise.all(inTurn(people, at).map(compare));
          }
        }
      });

      it('is read by its author and by administrators, also when others have asked', async () => {
        const { blog, filled } = opened;
        const absent = readsOf(filled.ids.removed);
        for (const named of filled.ids.hidden) {
          for (const [at, ask] of readsOf(named).entries()) {
            if (at % share > 0) continue;
            for (const person of inTurn(insiders, at)) {
              await sendAs(blog, ask, 'other', namesOf(named));
              const found = await sendAs(blog, ask, person, namesOf(named));
              const missing = await sendAs(
                blog,
                absent[at] as Ask,
                person,
                namesOf(filled.ids.removed),
              );
              assert.notEqual(found, missing, `${person}: ${ask.method} ${ask.path}`);
              assert.equal(
                await sendAs(blog, ask, person, namesOf(named)),
                found,
                `${person}: ${ask.path}`,
              );
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
          const { hidden, removed } = filled.ids;
          const named = hidden[0] as Named; // there are two
          const queries = (each: Named): readonly string[] => [
            ...queriesOf(each),
            ...mutationsOf(each),
            ...listQueriesOf(filled.ids, each.post),
            `subscription { commentAdded(after: "${each.comment}") { id } }`,
          ];
          const absent = queries(removed);
          for (const person of asking) {
            const { ask, close } = await openSocket(blog, person, protocol);
            for (const [at, query] of queries(named).entries()) {
              if (at % share > 0 || !inTurn(asking, at).includes(person)) continue;
              const expected = await ask(`a${at}`, absent[at] ?? '', namesOf(removed));
              assert.equal(
                await ask(`h${at}`, query, namesOf(named)),
                expected,
                `${person}: ${query}`,
              );
            }
            await close();
          }
        });
      }
    });
  }
}
