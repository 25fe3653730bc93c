import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  type ResponseCache,
  createResponseCache,
  type CurrentOrNot,
  toJsonBody,
} from '../../dist/http/response-cache.js';
import { type HttpResponse, jsonTextResponse } from '../../dist/http/message.js';

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

/** The body of a response that was made at once. */
function textOf(response: unknown): string {
  const { body } = response as HttpResponse; // no promise
  assert.ok(typeof body === 'string');
  return body;
}

function open(bytesMax = 10_000): {
  readonly source: Source;
  readonly ask: (key: string | undefined, body?: string) => string;
  readonly responses: ResponseCache<ReadingOfOne>;
} {
  const source = new Source();
  const responses = createResponseCache({ bytesMax, read: () => source.read() });
  /** What it answers: `body`, where that was made now. */
  const ask = (key: string | undefined, body?: string): string => {
    const response = responses.get(key, ({ value }, keep) =>
      keep(jsonTextResponse(200, body ?? `made of ${value}`)),
    );
    return textOf(response);
  };
  return { source, ask, responses };
}

it('a response is made once, until what it was made from is written to', () => {
  const { source, ask } = open();
  assert.equal(ask('a'), 'made of 1');
  assert.equal(ask('a', 'again'), 'made of 1');
  assert.equal(ask('b', 'other'), 'other');
  source.value = 2;
  assert.equal(ask('a'), 'made of 2');
  assert.equal(ask('a', 'again'), 'made of 2');
});

it('a response that was not marked, or has no key, is made each time', () => {
  const { ask, responses } = open();
  const unmarked = (body: string): unknown =>
    (responses.get('a', () => jsonTextResponse(200, body)) as HttpResponse).body;
  assert.deepEqual([unmarked('one'), unmarked('two')], ['one', 'two']);
  assert.deepEqual([ask(undefined, 'one'), ask(undefined, 'two')], ['one', 'two']);
});

it('a write that comes while a response is made keeps it from being kept', async () => {
  const { source, ask, responses } = open();
  let resolve: (response: HttpResponse) => void = () => undefined;
  const slow = new Promise<HttpResponse>((settle) => {
    resolve = settle;
  });
  const first = responses.get('a', async (_records, keep) => keep(await slow));
  source.value = 2;
  resolve(jsonTextResponse(200, 'old'));
  assert.equal((await first).body, 'old');
  assert.equal(ask('a', 'new'), 'new');
});

it('keys and responses stay within their bytes, and the oldest give way', () => {
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
  const responses = createResponseCache({ bytesMax: 10_000, read });
  for (const body of ['one', 'two']) {
    const response = responses.get('a', (_records, keep) => keep(jsonTextResponse(200, body)));
    assert.equal((response as HttpResponse).body, body);
  }
});

it('a short answer is text, a long one bytes', () => {
  assert.equal(toJsonBody('{}'), '{}');
  const long = `"${'é'.repeat(3_000)}"`;
  assert.deepEqual(toJsonBody(long), Buffer.from(long));
});
