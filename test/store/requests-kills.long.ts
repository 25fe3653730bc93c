/** A process that is killed in the middle of its commits, and a client that repeats (R40). */

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once as next } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { valueOf } from '../support/article-texts.ts';
import { allOf, pluck, times } from '../support/lists.ts';
import { supportUrl } from '../support/small-heap.ts';
import { type Answer, type Intent, openWritten, postId } from '../support/store-writer.ts';
import { durableStores } from '../support/stores.ts';
import { newOnce } from './contract-requests.ts';

const intents = 2_000;
const atOnce = 40;
const killsMin = 60;
const kinds = ['post', 'comment', 'article', 'count'] as const;
const writer = fileURLToPath(supportUrl('store-writer'));

/** Repeats each intent until it is answered. Returns the answers by text, and the kills. */
async function writeAll(url: string, open: Map<string, Intent>) {
  const answers = new Map<string, string>();
  let [kills, repeated] = [0, 0];
  while (open.size > 0) {
    const child = fork(writer, { env: { ...process.env, WRITER_URL: url } });
    await next(child, 'message');
    const waiting = [...open.values()];
    const send = (): void => {
      const intent = waiting.shift();
      if (intent !== undefined && child.connected) child.send(intent, () => undefined);
    };
    // A part of what is left: the others are answered after further kills.
    let left = 1 + Math.floor((Math.random() * 2 * intents) / killsMin);
    const ended = next(child, 'exit');
    child.on('message', ({ text, id, isRepeated }: Answer) => {
      if (isRepeated) repeated += 1;
      assert.ok(!answers.has(text) || answers.get(text) === id, `two answers for ${text}`);
      answers.set(text, id);
      open.delete(text);
      left -= 1;
      if (left === 0 || open.size === 0) child.kill('SIGKILL');
      else send();
    });
    times(atOnce).forEach(send);
    await ended;
    kills += 1;
  }
  return { answers, kills, repeated };
}

async function testKills(t: TestContext, url: string): Promise<void> {
  const all = times(intents).map((at): Intent => {
    return { kind: kinds[at % kinds.length] ?? 'post', text: `t${at}`, once: newOnce() };
  });
  const { answers, kills, repeated } = await writeAll(
    url,
    new Map(all.map((each) => [each.text, each])),
  );
  assert.equal(answers.size, intents);
  const store = await openWritten(url);
  t.after(async () => store.close());
  const posts = (await allOf(store.posts.all)).filter(({ id }) => id !== postId);
  const comments = await allOf(store.comments.ofPost(postId));
  const articles = (await allOf(store.articles.all)).filter(({ id }) => id !== 1);
  const found = [
    ...posts.map(({ id, title }) => `${title} ${id}`),
    ...comments.map(({ id, content }) => `${content} ${id}`),
    ...articles.map((article) => `${valueOf(article)?.title} ${article.id}`),
  ];
  const asked = pluck(
    all.filter(({ kind }) => kind !== 'count'),
    'text',
  );
  const answered = asked.map((text) => `${text} ${answers.get(text)}`);
  assert.deepEqual(found.toSorted(), answered.toSorted());
  assert.equal(valueOf(await store.articles.find(1))?.['n'], intents / kinds.length);
  assert.ok(repeated > 0, 'no answer was lost');
  t.diagnostic(`${kills} kills, ${repeated} answers lost`);
}

describe('writes that are repeated until they are answered', () => {
  for (const { name, skip, newUrl } of durableStores) {
    it(`are done once each ${name}, over kills`, { skip }, async (t) => {
      await testKills(t, await newUrl(t));
    });
  }
});
