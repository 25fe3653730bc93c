/** `commentAdded(after:)`: what was missed, then what comes, each once and in the order stored. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { times } from '../support/lists.ts';
import { isLong } from '../support/long.ts';
import { after, comment, overEvents, addPost, read, transports } from '../support/resuming.ts';
import { startServer } from '../support/server.ts';
import { durableStores, onPostgres, stores } from '../support/stores.ts';

for (const [number, { name, skip, newUrl }] of stores.entries()) {
  // The transports differ before the store is asked: all of them in memory, else one each.
  const over = isLong || number === 0 ? transports : transports.slice(number, number + 1);
  describe(`resuming ${name}`, { skip }, () => {
    for (const [transport, follow] of over) {
      test(`over ${transport}: what was stored after a comment, then what comes`, async (t) => {
        const server = await startServer(t, { env: { STORE_URL: await newUrl(t) } });
        const [a, b] = [await addPost(server), await addPost(server)];
        const ids: string[] = [];
        for (const at of times(6)) ids.push(await comment(server, at % 2 === 0 ? a : b, `${at}`));
        assert.equal((await server.fetch(`/comments/${ids[3]}`, { method: 'DELETE' })).status, 204);
        const expected: readonly (readonly [string, readonly string[]])[] = [
          [after(ids[0]), ['1', '2', '4', '5', '6', '7']],
          [after(ids[2]), ['4', '5', '6', '7']],
          [after(ids[5]?.toUpperCase()), ['6', '7']],
          [after(ids[0], a), ['2', '4', '6']],
          [after(ids[0], b), ['1', '5', '7']],
          [after(ids[1], a.toUpperCase()), ['2', '4', '6']],
        ];
        const nexts = await Promise.all(expected.map(([args]) => follow(t, server.port, args)));
        await comment(server, a, '6');
        await comment(server, b, '7');
        for (const [at, [args, words]] of expected.entries()) {
          const next = nexts[at];
          assert.deepEqual(next && (await read(next, words.length)), words, args);
        }
      });

      test(`over ${transport}: an id of no comment is NOT_FOUND, and ends no other`, async (t) => {
        const server = await startServer(t, { env: { STORE_URL: await newUrl(t) } });
        const a = await addPost(server);
        const [first, removed] = [await comment(server, a, '1'), await comment(server, a, '2')];
        await server.fetch(`/comments/${removed}`, { method: 'DELETE' });
        const live = await follow(t, server.port, after(first));
        for (const id of [removed, a, 'x', '', `${first}0`, 'é'.repeat(100)]) {
          const next = await follow(t, server.port, after(id));
          assert.equal(await next(), 'NOT_FOUND', id);
        }
        await comment(server, a, '3');
        assert.equal(await live(), '3');
      });
    }

    test('comments that are stored during the scan come once, in the order stored', async (t) => {
      const server = await startServer(t, { env: { STORE_URL: await newUrl(t) } });
      const a = await addPost(server);
      const first = await comment(server, a, 'first');
      const count = isLong ? 300 : 60;
      const before = times(count).map((at) => comment(server, a, `before ${at}`));
      await Promise.all(before);
      const nexts = await Promise.all(
        times(6).map((at) => (transports[at % 3]?.[1] ?? overEvents)(t, server.port, after(first))),
      );
      const during = times(count).map((at) => comment(server, a, `during ${at}`));
      const heard = await Promise.all(nexts.map((next) => read(next, 2 * count)));
      await Promise.all(during);
      const response = await server.fetch(`/posts/${a}/comments`);
      const stored = (await response.json()) as { content: string }[];
      const texts = stored.map(({ content }) => content).slice(1);
      for (const [at, words] of heard.entries()) assert.deepEqual(words, texts, `words ${at}`);
    });
  });
}

for (const { name, skip, newUrl } of durableStores) {
  test(
    `a restart ${name} ends no place: a client resumes with what it saw before`,
    { skip },
    async (t) => {
      const env = { STORE_URL: await newUrl(t) };
      const before = await startServer(t, { env });
      const a = await addPost(before);
      const id = await comment(before, a, '1');
      await comment(before, a, '2');
      await before.stop();
      const server = await startServer(t, { env });
      const next = await overEvents(t, server.port, after(id));
      assert.equal(await next(), '2');
      await comment(server, a, '3');
      assert.equal(await next(), '3');
    },
  );
}

describe('over nodes', { skip: onPostgres.skip }, () => {
  test('a client goes on at another node, which has not heard yet of what it saw', async (t) => {
    const url = await onPostgres.newUrl(t);
    const env = { STORE_URL: url };
    const [one, two] = [await startServer(t, { env }), await startServer(t, { env })];
    const a = await addPost(one);
    const first = await comment(one, a, 'first');
    const rounds = isLong ? 20 : 8;
    const warm = await overEvents(t, two.port, after(first));
    for (const round of times(rounds)) {
      const id = await comment(one, a, `${round}`);
      // At once: the other node polls later.
      const next = await overEvents(t, two.port, after(id));
      await comment(one, a, `${round} +`);
      assert.equal(await next(), `${round} +`, `round ${round}`);
    }
    const words = times(rounds).flatMap((round) => [`${round}`, `${round} +`]);
    assert.deepEqual(await read(warm, 2 * rounds), words);
  });
});
