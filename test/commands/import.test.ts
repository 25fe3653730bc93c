/** `import` beside what is there, and beside servers: all or nothing, and once (R50). */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { toAccountId } from '../../dist/auth/accounts.js';
import { fails, runCommandHere } from '../support/command.ts';
import { durableStores } from '../support/stores.ts';
import { startServer } from '../support/server.ts';
import { connectReady, subscribe } from '../support/ws-clients.ts';
import { exportFrom, importTo, newPlace } from '../support/transfer.ts';
import { account, article, author, comment, content } from '../support/transfer-lines.ts';
import { end, file, header, idOf, isEmpty, pending } from '../support/transfer-lines.ts';
import { post, records, toText, todo, whole } from '../support/transfer-lines.ts';
import { times } from '../support/lists.ts';
import { until } from '../support/until.ts';

const program = fileURLToPath(new URL('../../dist/server.js', import.meta.url));

for (const each of durableStores) {
  describe(`import to a store ${each.name}`, { skip: each.skip }, () => {
    it('takes a text of which each character is an escape of six', async (t) => {
      const place = { ...(await newPlace(t, each)), BODY_BYTES_MAX: '4000000' };
      const long = { ...post, content: '\u0001'.repeat(3_000_000) };
      const { output } = await importTo(place, toText([header, author, long, end]));
      assert.match(output, /^Stored 2 records;/);
    });

    it('refuses a record that is there with other values, and skips one with the same', async (t) => {
      const place = await newPlace(t, each);
      const said = 'Stored 7 records; 0 were there already.\n';
      assert.equal((await importTo(place, whole)).output, said);
      const before = (await exportFrom(place)).output;
      assert.equal(before, `${whole}\n`);
      const others: readonly (readonly unknown[])[] = [
        [{ ...author, name: 'bob' }],
        [
          { ...file, size: 6 },
          { ...content, base64: btoa('hello!') },
        ],
        [file, { ...content, base64: btoa('hallo') }],
        [{ ...file, owner: idOf(1) }, content],
        [{ ...todo, completed: true }],
        [{ ...article, document: { id: 3, title: 'b' } }],
        [{ ...post, authorId: idOf(1) }],
        [{ ...comment, content: 'd' }],
      ];
      const more = { ...todo, id: idOf(77) };
      for (const other of others) {
        const { errors } = await importTo(place, toText([header, more, ...other, end]));
        assert.match(errors, /^inkwell: Line 3: the store has this \w+ with other values\.\n$/);
      }
      for (const other of [
        { ...pending, status: undefined },
        { ...comment, status: 'PENDING' },
      ]) {
        const { errors } = await importTo(place, toText([header, more, other, end]));
        assert.match(errors, /^inkwell: Line 3: .*the store has it with another status\.\n$/);
      }
      const twice = await importTo(place, toText([header, more, { ...more, title: 'b' }, end]));
      assert.match(twice.errors, /Line 3: the store has this todo/);
      assert.equal((await exportFrom(place)).output, before);
      assert.match((await importTo(place, whole)).output, /^Stored 0 records; 7 were/);
      assert.equal((await exportFrom(place)).output, before);
    });

    it('that is killed has stored nothing, and can be repeated', async (t) => {
      const place = await newPlace(t, each);
      await importTo(place, '');
      const env = { ...process.env, ...place };
      const child = spawn(process.execPath, [program, 'import'], { env });
      const many = times(3_000).map((n) => ({ ...post, id: idOf(n + 100) }));
      child.stdin.on('error', () => undefined);
      child.stdin.write(`${toText([header, author, file, content, ...many])}\n`);
      const folder = join(place.UPLOAD_DIR, 'inkwell-files');
      // Its file is on the disk, and many records are in the database: behind them the rest waits.
      await until('the file is there', async () => (await readdir(folder)).length === 2);
      await until('the input is read', () => child.stdin.writableLength === 0);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const left = (await exportFrom(place)).output;
      assert.equal(left.split('\n').length, 3, left.slice(0, 500));
      const given = toText([header, author, file, content, ...many, end]);
      assert.match((await importTo(place, given)).output, /^Stored 3002 records/);
      assert.equal((await exportFrom(place)).output, `${given}\n`);
    });

    it('is seen by a server that runs, and one that fails is not', async (t) => {
      const place = await newPlace(t, each);
      const env = { ...place, DEMO_DATA: 'false' };
      const server = await startServer(t, { env });
      const titles = async () =>
        ((await (await server.fetch('/posts')).json()) as { title: string }[]).map((p) => p.title);
      // Twice: the second response is a kept one.
      assert.deepEqual([await titles(), await titles()], [[], []]);
      const blank = { ...comment, content: '' };
      await fails(importTo(place, toText([header, post, blank, end])), /Line 3/);
      assert.deepEqual(await titles(), []);
      assert.equal((await importTo(place, whole)).errors, '');
      assert.deepEqual(await titles(), ['a']);
      assert.equal(await (await server.fetch('/files/a.txt')).text(), 'hello');
      const next = await server.send('POST', '/api/articles', { title: 'next' });
      assert.equal(next.headers.get('location'), '/articles/5');
    });

    it('keeps the places of pages after comments that are removed', async (t) => {
      const place = await newPlace(t, each);
      const own = [7, 8, 9].map((n) => ({ ...comment, id: idOf(n) }));
      assert.equal((await importTo(place, toText([header, post, ...own, end]))).errors, '');
      // Its id is before all others, and its place behind them.
      const older = { ...comment, id: '0135dc19-b618-7000-8000-000000000000' };
      assert.equal((await importTo(place, toText([header, older, end]))).errors, '');
      const server = await startServer(t, { env: place });
      const removed = await server.fetch(`/comments/${idOf(7)}`, { method: 'DELETE' });
      assert.equal(removed.status, 204);
      const page = await server.fetch(`/posts/${post.id}/comments?limit=9&after=${idOf(7)}`);
      const ids = ((await page.json()) as { id: string }[]).map(({ id }) => id);
      assert.deepEqual(ids, [idOf(8), idOf(9), older.id]);
    });

    it('makes an author for an account without one (R20)', async (t) => {
      const place = await newPlace(t, each);
      const hash = 'WPHEQ5vlhkX7vHLO5GkFIKPMAxpk8oWzNZuxEIKB6Es';
      const bob = {
        kind: 'account',
        ...account(`scrypt$16384$8$1$kObE-defhTSIEuBa_XFeCA$${hash}`),
      };
      assert.equal((await importTo(place, toText([header, bob, end]))).errors, '');
      const [, line, made] = (await exportFrom(place)).output.split('\n');
      assert.deepEqual(JSON.parse(String(line)), bob);
      const { id, name, email } = JSON.parse(String(made)) as Record<string, string>;
      assert.deepEqual([id, name, email], [toAccountId('bob'), 'bob', 'b@example.org']);
    });

    it('limits files as uploads are limited', async (t) => {
      const place = await newPlace(t, each);
      const base64 = Buffer.alloc(2_000).toString('base64');
      const big = toText([header, { ...file, size: 2_000 }, { kind: 'content', base64 }, end]);
      const small = { ...place, STORED_BYTES_MAX: '1999' };
      await fails(importTo(small, big), /No more than 10000 files with 1999 bytes/);
      const limit = /Line 2: size is more than UPLOAD_BYTES_MAX/;
      await fails(importTo({ ...place, UPLOAD_BYTES_MAX: '1999' }, big), limit);
      await isEmpty(place);
      await fails(importTo({ ...place, UPLOAD_DIR: '' }, whole), /Line 3: UPLOAD_DIR is not set/);
    });
  });
}

const [, postgres] = durableStores;
if (postgres === undefined) throw new Error('there is a second store');
const { skip } = postgres;

test('subscribers of a node get what is imported, in its order', { skip }, async (t) => {
  const place = await newPlace(t, postgres);
  const server = await startServer(t, { env: place });
  const client = await connectReady(server.port);
  client.send(subscribe('1', 'subscription { commentAdded { content } }'));
  await client.settle();
  const many = times(50).map((at) => ({ ...comment, id: idOf(1_000 - at), content: String(at) }));
  await fails(importTo(place, toText([header, post, ...many, { kind: 'x' }, end])), /Line 53/);
  assert.equal((await importTo(place, toText([header, post, ...many, end]))).errors, '');
  for (const { content: expected } of many) {
    const payload = { data: { commentAdded: { content: expected } } };
    assert.deepEqual((await client.next()).payload, payload);
  }
});

test('the header of another format or of a newer version, or without a counter, is refused', async () => {
  const store = durableStores.find((one) => one.skip === false);
  const STORE_URL = (await store?.newUrl({ after })) ?? '';
  for (const [member, reason] of [
    [{ version: 2 }, /^inkwell: Line 1: is the header of another format/],
    [{ format: 'x' }, /^inkwell: Line 1: is the header of another format/],
    [{ articleCounter: -1 }, /^inkwell: Line 1: articleCounter must be a whole number/],
    [{ articleCounter: 1.5 }, /^inkwell: Line 1: articleCounter must be a whole number/],
  ] as const) {
    const input = toText([{ ...header, ...member }, ...records, end]);
    await fails(runCommandHere(['import'], { env: { STORE_URL }, input }), reason);
  }
});
