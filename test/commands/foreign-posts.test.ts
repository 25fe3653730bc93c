/** Posts of other systems: what their lines need, and what becomes of them (R50). */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toAccountId } from '../../dist/auth/accounts.js';
import { readPages } from '../support/lists.ts';
import { startServer } from '../support/server.ts';
import { durableStores } from '../support/stores.ts';
import { addAccount, exportFrom, importTo, newPlace, type Place } from '../support/transfer.ts';

type Line = Readonly<Record<string, unknown>>;

async function recordsOf(place: Place, kind: string): Promise<readonly Line[]> {
  const lines = (await exportFrom(place)).output.trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Line).filter((line) => line['kind'] === kind);
}

function toText(...lines: readonly Line[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** The milliseconds in an id (RFC 9562 §5.7). */
function timeOf(id: unknown): number {
  return Number.parseInt(String(id).replaceAll('-', '').slice(0, 12), 16);
}

for (const each of durableStores) {
  describe(`posts of other systems, ${each.name}`, { skip: each.skip }, () => {
    it('need title and content alone, and are recognised without a key', async (t) => {
      const place = await newPlace(t, each);
      const given = toText({ title: 'a', content: 'b' }, { title: 'a', content: 'c' });
      assert.match((await importTo(place, given)).output, /^Stored 2 records; 0 were/);
      assert.match((await importTo(place, given)).output, /^Stored 0 records; 2 were/);
      const posts = await recordsOf(place, 'post');
      const found = posts.map(({ title, content, status, authorId }) =>
        [title, content, status, authorId].join(),
      );
      assert.deepEqual(found.toSorted(), ['a,b,DRAFT,', 'a,c,DRAFT,']);
      for (const { id, createdAt } of posts) {
        assert.deepEqual([timeOf(id), createdAt], [0, '1970-01-01T00:00:00']);
      }
      // The line does not say that it is a draft.
      const server = await startServer(t, { env: place });
      const put = { title: 'a', content: 'b', status: 'PUBLISHED' };
      const { id } = posts.find(({ content }) => content === 'b') ?? {};
      assert.equal((await server.send('PUT', `/posts/${String(id)}`, put)).status, 204);
      assert.match((await importTo(place, given)).output, /^Stored 0 records; 2 were/);
    });

    it('keep their dates, authors, status and comments, under ids of their times', async (t) => {
      const place = await newPlace(t, each);
      await addAccount(place, 'bob', 'USER');
      const comment = { name: 'Eve', content: 'Well said.', createdAt: '2012-03-04T06:00:00Z' };
      const published = { status: 'PUBLISHED', createdAt: '2012-03-04T05:06:07.000Z' };
      const comments = [comment, comment];
      const post = { key: '17', title: 'a', content: 'b', author: 'ann', ...published, comments };
      const [author, createdAt] = ['bob', '1969-01-01T00:00'];
      const old = { key: '1', title: 'c', content: 'd', author, createdAt };
      // A demo account, which has an id of its own.
      const third = { key: '3', title: 'e', content: 'f', author: 'user' };
      const given = toText(post, old, third);
      assert.match((await importTo(place, given)).output, /^Stored 5 records; 0 were/);
      assert.match((await importTo(place, given)).output, /^Stored 0 records; 5 were/);

      const posts = await recordsOf(place, 'post');
      const [first, second, last] = ['a', 'c', 'e'].map((one) =>
        posts.find(({ title }) => title === one),
      );
      assert.equal(last?.['authorId'], '019b8d5e-9c00-7000-8000-000000000401');
      assert.equal(timeOf(first?.['id']), Date.parse('2012-03-04T05:06:07Z'));
      assert.match(String(first?.['id']), /^.{14}7.{3}-[89ab]/);
      const { title, status, createdAt: at, publishedAt, authorId } = first ?? {};
      const time = '2012-03-04T05:06:07';
      const expected = ['a', 'PUBLISHED', time, time, toAccountId('ann')];
      assert.deepEqual([title, status, at, publishedAt, authorId], expected);
      assert.deepEqual([timeOf(second?.['id']), second?.['authorId']], [0, toAccountId('bob')]);
      for (const { id, postId, name, content, createdAt: when } of await recordsOf(
        place,
        'comment',
      )) {
        assert.deepEqual([postId, name, content], [first?.['id'], 'Eve', 'Well said.']);
        assert.deepEqual(
          [when, timeOf(id)],
          ['2012-03-04T06:00:00', Date.parse(comment.createdAt)],
        );
      }

      // An author without an account is made; an account that comes later has its posts.
      const authors = await recordsOf(place, 'author');
      const named = authors.map(({ name, email }) => `${String(name)} ${String(email)}`);
      assert.deepEqual(named.toSorted(), ['ann ', 'bob a@example.org', 'user ']);
      await addAccount(place, 'ann', 'USER');
      const ann = (await recordsOf(place, 'account')).find((one) => one['username'] === 'ann');
      assert.equal(ann?.['id'], authorId);
      // What came to the other system meanwhile is added.
      const added = { content: 'Indeed.', status: 'PENDING' };
      const more = { ...post, comments: [...comments, added] };
      assert.match((await importTo(place, toText(more, old))).output, /^Stored 1 records; 4 were/);
      const all = await recordsOf(place, 'comment');
      const waiting = all.find((one) => one['status'] === 'PENDING');
      assert.deepEqual([waiting?.['content'], waiting?.['createdAt']], ['Indeed.', at]);

      // Lists have them by their times, though the older one came last.
      const server = await startServer(t, { env: { ...place, DEMO_DATA: 'false' } });
      const pages = (await readPages(server, '/posts?limit=1')) as unknown as Line[][];
      assert.deepEqual([pages.length, pages[0]?.[0]?.['title']], [3, 'a']);
    });

    it('are refused by their line if they changed, or have what nobody takes', async (t) => {
      const place = await newPlace(t, each);
      const post = { key: '1', title: 'a', content: 'b', createdAt: '2012-03-04T05:06:07' };
      assert.match((await importTo(place, toText(post))).output, /^Stored 1/);
      const before = (await exportFrom(place)).output;
      const other = { ...post, key: '2' };
      for (const [line, reason] of [
        [{ ...post, title: 'c' }, /the store has this post with other values/],
        [{ ...other, date: 'x' }, /date is no member of a post/],
        [{ ...other, key: 2 }, /key must be a string/],
        [{ ...other, createdAt: '2012-03-04 05:06' }, /createdAt must be a local date-time/],
        [{ ...other, status: 'publish' }, /status must be one of/],
        [{ ...other, author: ' a' }, /author username must be composed/],
        [{ ...other, comments: {} }, /comments must be an array/],
        [{ ...other, comments: [{ content: ' ' }] }, /content must not be blank/],
        [{ ...other, comments: [{ content: 'a', name: 'x'.repeat(101) }] }, /name must have/],
        [{ ...other, comments: [{ content: 'a', status: 'x' }] }, /status must be/],
        [{ ...other, comments: [{ text: 'a' }] }, /comments\/0\/text is no member/],
        [{ ...other, title: '\ud83d' }, /a lone surrogate/],
      ] as const) {
        const { code, errors } = await importTo(place, toText({ title: 'x', content: 'x' }, line));
        assert.equal(code, 1);
        assert.match(errors, /^inkwell: Line 2: [^\n]*\n$/);
        assert.match(errors, reason);
      }
      assert.equal((await exportFrom(place)).output, before);
    });
  });
}
