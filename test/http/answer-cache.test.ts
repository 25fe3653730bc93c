import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  type AnswerCache,
  createAnswerCache,
  type CurrentOrNot,
  toAnswer,
} from '../../dist/http/answer-cache.js';
import { type HttpReply, jsonTextReply } from '../../dist/http/message.js';

interface ReadingOfOne extends CurrentOrNot {
  readonly value: number;
}

/** One number that is read, and moves with every write. */
class Source {
  value = 1;

  read(): ReadingOfOne {
    const { value } = this;
    return { value, version: undefined, isCurrent: () => value === this.value };
  }
}

/** The body of a reply that was made at once. */
function textOf(reply: unknown): string {
  const { body } = reply as HttpReply; // no promise
  assert.ok(typeof body === 'string');
  return body;
}

function open(bytesMax = 10_000): {
  readonly source: Source;
  readonly ask: (key: string | undefined, body?: string) => string;
  readonly answers: AnswerCache<ReadingOfOne>;
} {
  const source = new Source();
  const answers = createAnswerCache({ bytesMax, read: () => source.read() });
  /** What it answers: `body`, where that was made now. */
  const ask = (key: string | undefined, body?: string): string => {
    const reply = answers.get(key, ({ value }, keep) =>
      keep(jsonTextReply(200, body ?? `made of ${value}`)),
    );
    return textOf(reply);
  };
  return { source, ask, answers };
}

it('a reply is made once, until what it was made from is written to', () => {
  const { source, ask } = open();
  assert.equal(ask('a'), 'made of 1');
  assert.equal(ask('a', 'again'), 'made of 1');
  assert.equal(ask('b', 'other'), 'other');
  source.value = 2;
  assert.equal(ask('a'), 'made of 2');
  assert.equal(ask('a', 'again'), 'made of 2');
});

it('a reply that was not marked, or has no key, is made each time', () => {
  const { ask, answers } = open();
  const unmarked = (body: string): unknown =>
    (answers.get('a', () => jsonTextReply(200, body)) as HttpReply).body;
  assert.deepEqual([unmarked('one'), unmarked('two')], ['one', 'two']);
  assert.deepEqual([ask(undefined, 'one'), ask(undefined, 'two')], ['one', 'two']);
});

it('a write that comes while an answer is made keeps it from being kept', async () => {
  const { source, ask, answers } = open();
  let resolve: (reply: HttpReply) => void = () => undefined;
  const slow = new Promise<HttpReply>((settle) => {
    resolve = settle;
  });
  const first = answers.get('a', async (_records, keep) => keep(await slow));
  source.value = 2;
  resolve(jsonTextReply(200, 'old'));
  assert.equal((await first).body, 'old');
  assert.equal(ask('a', 'new'), 'new');
});

it('keys and replies stay within their bytes, and the oldest give way', () => {
  const { source, ask } = open(6_000);
  for (let number = 0; number < 50; number += 1) ask(`k${number}`, 'x'.repeat(40));
  const kept = Array.from({ length: 50 }, (_, number) => ask(`k${49 - number}`, 'again'));
  assert.equal(
    kept.findIndex((body) => body === 'again'),
    Math.floor(6_000 / 583),
  );
  // What is out of date counts, and gives way like the rest.
  source.value = 2;
  ask('new', 'y');
  assert.equal(ask('new', 'again'), 'y');
  ask('too large', 'x'.repeat(3_001));
  assert.equal(ask('too large', 'again'), 'again');
});

it('nothing is kept without bytes for it, or where the source cannot tell what it is in', () => {
  const { ask } = open(0);
  assert.deepEqual([ask('a', 'one'), ask('a', 'two')], ['one', 'two']);
  const read = (): CurrentOrNot => ({ version: undefined, isCurrent: () => false });
  const answers = createAnswerCache({ bytesMax: 10_000, read });
  for (const body of ['one', 'two']) {
    const reply = answers.get('a', (_records, keep) => keep(jsonTextReply(200, body)));
    assert.equal((reply as HttpReply).body, body);
  }
});

it('a short answer is text, a long one bytes', () => {
  assert.equal(toAnswer('{}'), '{}');
  const long = `"${'é'.repeat(3_000)}"`;
  assert.deepEqual(toAnswer(long), Buffer.from(long));
});
