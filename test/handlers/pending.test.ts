/**
 * R48: for everybody but administrators and the author of its post, a comment that waits does not
 * exist. Every request is sent with the ids of such a comment and of one that was removed, by
 * everybody, over every transport; the responses must be the same. So must lists be before and
 * after there is such a comment.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { overHttp } from '../support/draft-asks.ts';
import * as drafts from '../support/drafts.ts';
import { readPages } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import * as asks from '../support/pending-asks.ts';
import { inMemory, stores } from '../support/stores.ts';

const { insiders, sendAs } = drafts;

/** For whom it does not exist. Others, whose tokens are refused, are in `drafts.test.ts`. */
const people = ['anonymous', 'other'] as const;

async function fill(blog: drafts.Blog, every: number) {
  const [post, other] = [await blog.post('PUBLISHED'), await blog.post('PUBLISHED', 'admin')];
  await blog.comment(other, 'on another post', 'admin');
  await blog.comment(post, 'first');
  const visible = await blog.comment(post, 'visible');
  const on = { post, visible };
  const lists = [...asks.listsOf(on), ...asks.listQueriesOf(on).flatMap(overHttp)];
  const before = await drafts.answersOf(blog, lists, { people, every });
  const waiting = await blog.comment(post, 'waits', 'anonymous');
  await blog.comment(post, 'waits too', 'other');
  await blog.comment(other, 'waits elsewhere', 'other');
  const removed = await blog.comment(post, 'removed');
  await blog.send('DELETE', `/comments/${removed}`);
  const names = { hidden: { [waiting]: 'ID' }, removed: { [removed]: 'ID' } };
  /** The same of the comment that waits and of the removed one. */
  const pairOf = <T>(of: (id: string) => readonly T[]) => {
    return { hidden: of(waiting), removed: of(removed), names };
  };
  return { ...on, waiting, lists, before, pairOf };
}

for (const place of stores) {
  // The modes differ before the store is asked.
  for (const REQUIRE_AUTH of isLong || place === inMemory ? ['owners', 'writes'] : ['owners']) {
    /** Of other stores than memory every third question is asked, at length each. */
    const every = isLong || (place === inMemory && REQUIRE_AUTH === 'owners') ? 1 : 3;
    const title = `a comment that waits, with ${REQUIRE_AUTH}, on a store ${place.name}`;
    describe(title, { skip: place.skip }, () => {
      const env = { REQUIRE_AUTH, COMMENTS: 'moderated', COMMENTS_PER_MINUTE_MAX: '10000' };
      const opened = drafts.useBlog(
        (suite) => drafts.openBlog(suite, place, { env }),
        (blog) => fill(blog, every),
      );

      it('is in no list, page or tag of others', async () => {
        const { blog, filled } = opened;
        for (const time of [1, 2]) {
          const lists = await drafts.answersOf(blog, filled.lists, { people, every });
          assert.deepEqual(lists, filled.before, `time ${time}`);
          await drafts.answersOf(blog, asks.listsOf(filled), { people: insiders, every });
        }
      });

      it('is for others as one that was removed, whatever is asked, and whoever has asked', async () => {
        const { blog, filled } = opened;
        const path = `/comments/${filled.waiting}`;
        const own = await blog.one.fetch(path, { headers: blog.people.author });
        const tag = own.headers.get('etag') ?? '';
        assert.match(tag, /^"/);
        const pair = filled.pairOf((id) => asks.asksOf(id, filled, tag));
        await drafts.assertAbsent(blog, pair, { people, every });
      });

      it('is read by the author of the post and by administrators, with its status', async () => {
        const { blog, filled } = opened;
        for (const person of insiders) {
          for (const ask of asks.readsOf(filled.waiting)) {
            await sendAs(blog, ask, 'anonymous');
            const found = await sendAs(blog, ask, person);
            assert.match(found, ask.method === 'GET' ? /^\[200,.*PENDING/ : /^\[200,/);
            assert.match(found, /"private, no-cache"/);
          }
          const isAdmin = person === 'admin';
          const others = 'visible PUBLISHED, first PUBLISHED';
          const elsewhere = `on another post ${isAdmin ? 'PUBLISHED' : '-'}`;
          const waiting = `${isAdmin ? 'waits elsewhere PENDING, ' : ''}waits too PENDING, waits PENDING`;
          const ofPost = 'first PUBLISHED, visible PUBLISHED, waits PENDING, waits too PENDING';
          // In pages of each size, by links.
          const fetch = (path: string) =>
            blog.nodes[1].fetch(path, { headers: blog.people[person] });
          for (const [path, expected] of [
            [`/posts/${filled.post}/comments?`, ofPost],
            ['/comments?status=PENDING&', waiting],
            ['/comments?status=PUBLISHED&', `${others}, ${elsewhere}`],
            ['/comments?', `${waiting}, ${others}, ${elsewhere}`],
          ] as const) {
            for (const limit of ['', 1, 2, 3, 4, 900]) {
              const pages = await readPages({ fetch }, `${path}limit=${limit}`);
              const comments = pages.flat() as unknown as { content: string; status?: string }[];
              const told = comments.map(({ content, status = '-' }) => `${content} ${status}`);
              assert.equal(told.join(', '), expected, `${path} ${limit}`);
              assert.equal(pages.length, Math.ceil(told.length / (Number(limit) || 900)));
            }
          }
        }
      });

      for (const protocol of ['graphql-transport-ws', 'graphql-ws']) {
        it(`is as one that was removed over a socket (${protocol})`, async () => {
          const { blog, filled } = opened;
          const resume = (id: string) => `subscription { commentAdded(after: "${id}") { id } }`;
          const queries = (id: string): readonly string[] => [
            ...asks.mutationsOf(id),
            ...asks.listQueriesOf(filled, id),
            resume(id),
          ];
          const all = { every: 1, protocol };
          await drafts.assertAbsentOverSocket(blog, filled.pairOf(queries), { ...all, people });
          // To resume needs a place, which it has for nobody.
          const own = filled.pairOf((id) => [resume(id)]);
          await drafts.assertAbsentOverSocket(blog, own, { ...all, people: ['author'] });
        });
      }
    });
  }
}
