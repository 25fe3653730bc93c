import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createAnswerCache, toAnswer } from '../../dist/http/answer-cache.js';

it('an answer is made once for each revision', () => {
  let revision = 1;
  let made = 0;
  const answers = createAnswerCache({ bytesMax: 1_000, revision: () => revision });
  const make = (): string => `made ${(made += 1)}`;
  assert.equal(answers.get('a', make), 'made 1');
  assert.equal(answers.get('a', make), 'made 1');
  revision = 2;
  assert.equal(answers.get('a', make), 'made 2');
});

it('a write that comes while an answer is made keeps it from being kept', async () => {
  let revision = 1;
  const answers = createAnswerCache({ bytesMax: 1_000, revision: () => revision });
  let resolve: (answer: string) => void = () => undefined;
  const slow = new Promise<string>((settle) => {
    resolve = settle;
  });
  const first = answers.get('a', () => slow);
  revision = 2;
  resolve('old');
  assert.equal(await first, 'old');
  assert.equal(
    answers.get('a', () => 'new'),
    'new',
  );
});

it('an answer made before a write is not kept after it, though others are', () => {
  let revision = 1;
  const answers = createAnswerCache({ bytesMax: 1_000, revision: () => revision });
  const before = answers.revision();
  revision = 2;
  answers.find('b');
  answers.keep('a', 'old', before);
  assert.equal(answers.find('a'), undefined);
});

it('keys and answers stay within their bytes', () => {
  const answers = createAnswerCache({ bytesMax: 1_000, revision: () => 1 });
  answers.find('start');
  for (let number = 0; number < 50; number += 1) answers.keep(`k${number}`, 'x'.repeat(30), 1);
  const kept = Array.from({ length: 50 }, (_, number) => answers.find(`k${number}`));
  const bytes = kept.filter((answer) => answer !== undefined).length * 262;
  assert.ok(bytes > 0 && bytes <= 1_000, `${bytes}`);
  answers.keep('too large', 'x'.repeat(401), 1);
  assert.equal(answers.find('too large'), undefined);
});

it('nothing is kept without bytes for it, or where the store cannot tell its revision', () => {
  for (const options of [
    { bytesMax: 0, revision: () => 1 },
    { bytesMax: 1_000, revision: () => undefined },
  ]) {
    const answers = createAnswerCache(options);
    assert.equal(
      answers.get('a', () => 'one'),
      'one',
    );
    assert.equal(
      answers.get('a', () => 'two'),
      'two',
    );
  }
});

it('a short answer is text, a long one bytes', () => {
  assert.equal(toAnswer('{}'), '{}');
  const long = `"${'é'.repeat(3_000)}"`;
  assert.deepEqual(toAnswer(long), Buffer.from(long));
});
