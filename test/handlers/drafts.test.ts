/**
 * R44: for everybody but its author and administrators, a post that is not published does not
 * exist. Every request is sent with the ids of such a post and of one that was removed, by
 * everybody, over every transport; the responses must be the same. So must lists be before and
 * after there are such posts.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as asks from '../support/draft-asks.ts';
import * as drafts from '../support/drafts.ts';
import { pluck } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { inMemory, stores } from '../support/stores.ts';

const { insiders, inTurn, sendAs, strangers } = drafts;

/** Those whose token is refused before anything is looked at ask only at length. */
const people = isLong ? strangers : (['anonymous', 'other'] as const);

async function fill(blog: drafts.Blog, every: number) {
  const add = async (post: string): Promise<asks.Named> => ({
    post,
    comment: await blog.comment(post, 'c'),
  });
  const visible = await add(await blog.post('PUBLISHED'));
  for (const _ of [1, 2, 3]) await blog.post('PUBLISHED');
  const { id: author } = await blog.one.read<{ id: string }>('/profile', blog.people.author);
  const ids = { visible, author, hidden: [], removed: visible };
  const lists = [
    ...asks.listsOf(ids).map((path) => ({ method: 'GET', path })),
    ...asks.listQueriesOf(ids).flatMap(asks.overHttp),
  ];
  /** The lists of strangers, before there are drafts. */
  const before = await drafts.answersOf(blog, lists, { people, every });
  const draft = await add(await blog.post('DRAFT'));
  const pending = await add(await blog.post('PENDING_MODERATION'));
  const ofAdmin = await blog.post('DRAFT', 'admin');
  const removed = await add(await blog.post('DRAFT'));
  await blog.remove(removed.post);
  return {
    ids: { ...ids, hidden: [draft, pending], removed },
    lists,
    before,
    ofAdmin,
    draft,
    pending,
  };
}

const namesOf = ({ post, comment }: asks.Named) => ({ [post]: 'POST', [comment]: 'COMMENT' });
/** The same of a hidden post and of the removed one. */
const pairOf = <T>(
  of: (named: asks.Named) => readonly T[],
  named: asks.Named,
  gone: asks.Named,
) => ({
  hidden: of(named),
  removed: of(gone),
  names: { hidden: namesOf(named), removed: namesOf(gone) },
});

for (const place of stores) {
  // The modes differ before the store is asked.
  for (const mode of isLong || place === inMemory ? ['owners', 'members'] : ['owners']) {
    /** Of the store in memory each question is asked, of others and in the other mode at length. */
    const every = isLong || (place === inMemory && mode === 'owners') ? 1 : 3;
    describe(`a draft, with ${mode}, on a store ${place.name}`, { skip: place.skip }, () => {
      const opened = drafts.useBlog(
        (suite) => drafts.openBlog(suite, place, mode),
        (blog) => fill(blog, every),
      );

      it('is in no list, page or tag', async () => {
        const { blog, filled } = opened;
        for (const time of [1, 2]) {
          const lists = await drafts.answersOf(blog, filled.lists, { people, every });
          assert.deepEqual(lists, filled.before, `time ${time}`);
          await sendAs(blog, { method: 'GET', path: '/posts' }, 'admin');
          await sendAs(blog, { method: 'GET', path: '/posts?status=DRAFT' }, 'author');
        }
      });

      it('is as one that was removed, whatever is asked, and whoever has asked before', async () => {
        const { blog, filled } = opened;
        const { ids, draft, pending } = filled;
        const own = await blog.one.fetch(`/posts/${draft.post}`, { headers: blog.people.author });
        const tag = own.headers.get('etag') ?? '';
        assert.match(tag, /^"/);
        const all = pairOf((each) => asks.asksOf(ids, each), draft, ids.removed);
        await drafts.assertAbsent(blog, all, { people, every });
        const reads = pairOf(asks.readsOf, pending, ids.removed);
        await drafts.assertAbsent(blog, reads, { people, every });
        // Those with conditions are six of each: a third of them, of every kind, in turn.
        const conditional = pairOf((each) => asks.conditionalOf(each, tag), draft, ids.removed);
        // A token that is not valid is refused before anything is looked at.
        const known = mode === 'owners' ? (['anonymous', 'other'] as const) : (['other'] as const);
        await drafts.assertAbsent(blog, conditional, { people: known, every: isLong ? every : 3 });
      });

      it('is read by its author and by administrators, also when others have asked', async () => {
        const { blog, filled } = opened;
        const absent = asks.readsOf(filled.ids.removed);
        const gone = namesOf(filled.ids.removed);
        for (const named of filled.ids.hidden) {
          for (const [at, ask] of asks.readsOf(named).entries()) {
            if (at % every > 0) continue;
            for (const person of inTurn(insiders, at)) {
              const read = () => sendAs(blog, ask, person, namesOf(named));
              await sendAs(blog, ask, 'other');
              const found = await read();
              const missing = await sendAs(blog, absent[at] as asks.Ask, person, gone);
              assert.notEqual(found, missing, `${person}: ${ask.method} ${ask.path}`);
              assert.equal(await read(), found, `${person}: ${ask.path}`);
            }
          }
        }
      });

      it('is in the lists of its author by its status, and in all of administrators', async () => {
        const { blog, filled } = opened;
        const { draft, pending, ofAdmin } = filled;
        const of = `author=${filled.ids.author}`;
        for (const [person, query, expected] of [
          ['author', '?status=DRAFT', [draft.post]],
          ['author', '?status=PENDING_MODERATION', [pending.post]],
          ['author', `?status=DRAFT&${of}`, [draft.post]],
          ['other', `?status=DRAFT&${of}`, []],
          ['admin', '?status=DRAFT', [ofAdmin, draft.post]],
          ['admin', `?status=DRAFT&${of}`, [draft.post]],
          ['admin', '', 7],
          ['author', '', 4],
          ['author', `?${of}`, 4],
          ['other', '?status=PUBLISHED', 4],
        ] as const) {
          const path = `/posts${query}`;
          const ids = pluck(await blog.one.read<{ id: string }[]>(path, blog.people[person]), 'id');
          const found = typeof expected === 'number' ? ids.length : ids;
          assert.deepEqual(found, expected, `${person} ${query}`);
        }
      });

      for (const protocol of ['graphql-transport-ws', 'graphql-ws']) {
        it(`is as one that was removed over a socket (${protocol})`, async () => {
          const { blog, filled } = opened;
          const queries = (each: asks.Named): readonly string[] => [
            ...asks.queriesOf(each),
            ...asks.mutationsOf(each),
            ...asks.listQueriesOf(filled.ids, each.post),
            `subscription { commentAdded(after: "${each.comment}") { id } }`,
          ];
          const pair = pairOf(queries, filled.draft, filled.ids.removed);
          await drafts.assertAbsentOverSocket(blog, pair, { people, every, protocol });
        });
      }
    });
  }
}
