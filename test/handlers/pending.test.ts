/**
 * R48: for everybody but administrators and the author of its post, a comment that waits does not
 * exist. Every request is sent with the ids of such a comment and of one that was removed, by
 * everybody, over every transport; the responses must be the same. So must lists be before and
 * after there is such a comment.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Ask, overHttp } from '../support/draft-asks.ts';
import {
  type Blog,
  insiders,
  inTurn,
  openBlog,
  openSocket,
  sendAs,
  useBlog,
} from '../support/drafts.ts';
import { readPages } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import {
  asksOf,
  type Blogged,
  listQueriesOf,
  listsOf,
  mutationsOf,
  readsOf,
} from '../support/pending-asks.ts';
import { inMemory, stores } from '../support/stores.ts';

/** For whom it does not exist. Others, whose tokens are refused, are in `drafts.test.ts`. */
const strangers = ['anonymous', 'other'] as const;

interface Filled extends Blogged {
  readonly waiting: string;
  readonly removed: string;
  readonly lists: readonly string[];
}

/** Of other stores than memory every third question is asked, at length each. */
type Share = 1 | 3;

async function readLists(blog: Blog, on: Blogged, share: Share): Promise<readonly string[]> {
  const asks = [...listsOf(on), ...listQueriesOf(on).flatMap(overHttp)];
  const listed: string[] = [];
  for (const [at, ask] of asks.entries()) {
    if (at % share > 0) continue;
    for (const person of inTurn(strangers, at)) listed.push(await sendAs(blog, ask, person));
  }
  return listed;
}

async function fill(blog: Blog, share: Share): Promise<Filled> {
  const [post, other] = [await blog.post('PUBLISHED'), await blog.post('PUBLISHED', 'admin')];
  await blog.send('PATCH', `/posts/${other}`, { body: { status: 'PUBLISHED' }, as: 'admin' });
  await blog.comment(other, 'on another post', 'admin');
  await blog.comment(post, 'first');
  const visible = await blog.comment(post, 'visible');
  const on = { post, visible };
  const lists = await readLists(blog, on, share);
  const waiting = await blog.comment(post, 'waits', 'anonymous');
  await blog.comment(post, 'waits too', 'other');
  await blog.comment(other, 'waits elsewhere', 'other');
  const removed = await blog.comment(post, 'removed');
  await blog.send('DELETE', `/comments/${removed}`);
  return { ...on, waiting, removed, lists };
}

for (const place of stores) {
  // The modes differ before the store is asked.
  for (const REQUIRE_AUTH of isLong || place === inMemory ? ['writes', 'owners'] : ['owners']) {
    const share: Share = isLong || place.name === 'in memory' ? 1 : 3;
    const title = `a comment that waits, with ${REQUIRE_AUTH}, on a store ${place.name}`;
    describe(title, { skip: place.skip }, () => {
      const env = { REQUIRE_AUTH, COMMENTS: 'moderated', COMMENTS_PER_MINUTE_MAX: '10000' };
      const opened = useBlog(
        (suite) => openBlog(suite, place, { env }),
        (blog) => fill(blog, share),
      );

      it('is in no list, page or tag of others', async () => {
        const { blog, filled } = opened;
        for (let time = 0; time < 2; time += 1) {
          const lists = await readLists(blog, filled, share);
          assert.deepEqual(lists, filled.lists, `time ${time}`);
          for (const person of insiders) {
            for (const ask of listsOf(filled)) await sendAs(blog, ask, person);
          }
        }
      });

      it('is for others as one that was removed, whatever is asked, and whoever has asked', async () => {
        const { blog, filled } = opened;
        const { waiting, removed } = filled;
        const own = await blog.one.fetch(`/comments/${waiting}`, { headers: blog.people.author });
        const tag = own.headers.get('etag') ?? '';
        assert.match(tag, /^"/);
        const absent = asksOf(removed, filled, tag);
        for (const [at, ask] of asksOf(waiting, filled, tag).entries()) {
          if (at % share > 0) continue;
          if (/GET|HEAD/.test(ask.method)) await sendAs(blog, ask, 'author');
          for (const person of inTurn(strangers, at)) {
            const expected = await sendAs(blog, absent[at] as Ask, person, { [removed]: 'ID' });
            const what = `${person}: ${ask.method} ${ask.path} ${JSON.stringify([ask.body, ask.headers])}`;
            const found = await sendAs(blog, ask, person, { [waiting]: 'ID' });
            assert.equal(found, expected, what);
          }
        }
      });

      it('is read by the author of the post and by administrators, with its status', async () => {
        const { blog, filled } = opened;
        for (const person of insiders) {
          for (const ask of readsOf(filled.waiting)) {
            await sendAs(blog, ask, 'anonymous');
            const found = await sendAs(blog, ask, person);
            assert.match(found, ask.method === 'GET' ? /^\[200,.*PENDING/ : /^\[200,/);
            assert.doesNotMatch(found, /"public|max-age/);
            assert.match(found, /"private, no-cache"/);
          }
          const listed = async (path: string): Promise<string> => {
            const headers = blog.people[person];
            const comments = (await (await blog.nodes[1].fetch(path, { headers })).json()) as {
              content: string;
              status?: string;
            }[];
            return comments.map(({ content, status = '-' }) => `${content} ${status}`).join(', ');
          };
          const isAdmin = person === 'admin';
          const others = 'visible PUBLISHED, first PUBLISHED';
          assert.equal(
            await listed(`/posts/${filled.post}/comments`),
            'first PUBLISHED, visible PUBLISHED, waits PENDING, waits too PENDING',
          );
          const elsewhere = `on another post ${isAdmin ? 'PUBLISHED' : '-'}`;
          const waiting = `${isAdmin ? 'waits elsewhere PENDING, ' : ''}waits too PENDING, waits PENDING`;
          assert.equal(await listed('/comments?status=PENDING'), waiting);
          assert.equal(await listed('/comments?status=PUBLISHED'), `${others}, ${elsewhere}`);
          assert.equal(await listed('/comments'), `${waiting}, ${others}, ${elsewhere}`);
          // In pages of each size, by links.
          const fetch = (path: string) => blog.one.fetch(path, { headers: blog.people[person] });
          for (const path of [
            `/posts/${filled.post}/comments?`,
            '/comments?',
            '/comments?status=PENDING&',
          ]) {
            const [all] = await readPages({ fetch }, path);
            for (const limit of [1, 2, 3, 4, 900]) {
              const pages = await readPages({ fetch }, `${path}limit=${limit}`);
              assert.ok(pages.every((page) => page.length > 0 && page.length <= limit));
              assert.deepEqual(pages.flat(), all, `${path} ${limit}`);
            }
          }
        }
      });

      for (const protocol of ['graphql-transport-ws', 'graphql-ws']) {
        it(`is as one that was removed over a socket (${protocol})`, async () => {
          const { blog, filled } = opened;
          const queries = (id: string): readonly string[] => [
            ...mutationsOf(id),
            ...listQueriesOf(filled, id),
            `subscription { commentAdded(after: "${id}") { id } }`,
          ];
          const absent = queries(filled.removed);
          for (const person of [...strangers, 'author'] as const) {
            const { ask, close } = await openSocket(blog, person, protocol);
            for (const [at, query] of queries(filled.waiting).entries()) {
              // To resume needs a place, which it has for nobody.
              if (person === 'author' && !query.startsWith('subscription')) continue;
              const { waiting, removed } = filled;
              const expected = await ask(`a${at}`, absent[at] ?? '', { [removed]: 'ID' });
              const found = await ask(`h${at}`, query, { [waiting]: 'ID' });
              assert.equal(found, expected, `${person}: ${query}`);
            }
            await close();
          }
        });
      }
    });
  }
}
