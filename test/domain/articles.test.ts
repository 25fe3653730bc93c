import assert from 'node:assert/strict';
import test from 'node:test';
import {
  decodeArticleDraft,
  toPatchedArticle,
  toPatchedArticles,
} from '../../dist/domain/articles.js';
import { AppError } from '../../dist/errors.js';
import type { Article, Json } from '../../dist/store/model.js';

const bytesMax = 1_024;

const full = {
  id: 7,
  title: 'A title',
  author: { givenName: 'Ada', familyName: 'Lovelace', born: 1815 },
  content: '',
  tags: ['one', ''],
  publishedAt: '2024-05-01T10:15',
  phoneNumber: { nested: [null, 1.5] },
};

function refusal(act: () => unknown): AppError {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  return assert.fail('not refused');
}

function places(act: () => unknown): readonly string[] {
  const error = refusal(act);
  assert.equal(error.code, 'invalid_body');
  return error.facts.errors?.map(({ pointer }) => pointer) ?? [];
}

test('an article is an open document that is kept as it was sent', () => {
  assert.equal(decodeArticleDraft(full, bytesMax), full);
  const least = { title: ' x ' };
  assert.deepEqual(decodeArticleDraft(least, bytesMax), { title: ' x ' });
});

test('a date-time with an offset is accepted and kept as sent', () => {
  const publishedAt = '2024-05-01T10:15:30.120+02:00[Europe/Berlin]';
  assert.equal(
    decodeArticleDraft({ title: 'x', publishedAt }, bytesMax)['publishedAt'],
    publishedAt,
  );
});

test('every wrong member is named by its place', () => {
  const rows: readonly (readonly [Json, readonly string[]])[] = [
    ...[null, [], 'text', 1, true].map((body) => [body, ['']] as const),
    [{}, ['/title']],
    ...['', ' \u2003\t', 1, null].map((title) => [{ title }, ['/title']] as const),
    ...[0, -1, 1.5, '1', null, 2 ** 53].map((id) => [{ title: 'x', id }, ['/id']] as const),
    ...[null, 'Ada', []].map((author) => [{ title: 'x', author }, ['/author']] as const),
    [
      { title: 'x', author: { givenName: 1, familyName: null } },
      ['/author/givenName', '/author/familyName'],
    ],
    ...[null, 1, {}].map((content) => [{ title: 'x', content }, ['/content']] as const),
    ...[null, 'tag', {}].map((tags) => [{ title: 'x', tags }, ['/tags']] as const),
    [{ title: 'x', tags: ['a', 1, 'b', null] }, ['/tags/1', '/tags/3']],
    ...[null, 0, '', '2024-02-30T10:00', '2024-05-01', '2024-05-01T24:00'].map(
      (publishedAt) => [{ title: 'x', publishedAt }, ['/publishedAt']] as const,
    ),
    [
      { id: 'x', content: 1, tags: 1, author: 1, publishedAt: 1 },
      ['/id', '/title', '/author', '/content', '/tags', '/publishedAt'],
    ],
  ];
  for (const [body, expected] of rows) {
    assert.deepEqual(
      places(() => decodeArticleDraft(body, bytesMax)),
      expected,
      JSON.stringify(body),
    );
  }
});

test('a response lists at most twenty faults, also of many articles', () => {
  const tags = Array.from({ length: 1_000 }, () => 1);
  assert.equal(places(() => decodeArticleDraft({ tags }, bytesMax)).length, 20);
  const before = Array.from({ length: 100 }, (_, index) => ({ id: index + 1, title: 'x' }));
  const after = before.map(({ id }) => ({ id, title: '', content: 1 }));
  assert.equal(places(() => toPatchedArticles(before, after, bytesMax)).length, 20);
});

test('an article may be as large as allowed, in bytes of JSON, and no larger', () => {
  for (const character of ['x', 'é', '😀', '"', '\u0001']) {
    const size = (count: number): number =>
      Buffer.byteLength(JSON.stringify({ title: 'x', content: character.repeat(count) }));
    let count = 1;
    while (size(count + 1) <= bytesMax) count += 1;
    const body = (length: number): Json => {
      return { title: 'x', content: character.repeat(length) };
    };
    assert.doesNotThrow(() => decodeArticleDraft(body(count), bytesMax));
    const error = refusal(() => decodeArticleDraft(body(count + 1), bytesMax));
    assert.equal(error.code, 'content_too_large', character);
  }
});

test('an article nested 64 levels is kept, one of 65 is refused', () => {
  const nest = (levels: number): Json => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  const before: Article = { id: 1, title: 'x' };
  assert.ok(toPatchedArticle(before, { ...before, deep: nest(63) }, bytesMax));
  assert.deepEqual(
    places(() => toPatchedArticle(before, { ...before, deep: nest(64) }, bytesMax)),
    [''],
  );
});

test('a patched article keeps its id and is an article', () => {
  const before: Article = { id: 7, title: 'x' };
  const after = { title: 'y', id: 7, more: 1 };
  assert.equal(toPatchedArticle(before, after, bytesMax), after);
  const refused: readonly (readonly [Json, string])[] = [
    [{ id: 8, title: 'y' }, '/id'],
    [{ id: '7', title: 'y' }, '/id'],
    [{ title: 'y' }, '/id'],
    [{ id: 7 }, '/title'],
    [{ id: 7, title: 'y', publishedAt: 'never' }, '/publishedAt'],
    [null, ''],
    [[before], ''],
  ];
  for (const [result, place] of refused) {
    assert.deepEqual(
      places(() => toPatchedArticle(before, result, bytesMax)),
      [place],
    );
  }
});

test('patched articles are the same ones in the same order', () => {
  const one: Article = { id: 1, title: 'one' };
  const two: Article = { id: 2, title: 'two' };
  const before = [one, two];
  const changed = { id: 2, title: 'zwei' };
  assert.deepEqual(toPatchedArticles(before, [one, changed], bytesMax), [one, changed]);
  const refused: readonly (readonly [Json, readonly string[]])[] = [
    [null, ['']],
    [{}, ['']],
    [[one], ['']],
    [[one, two, { id: 3, title: 'three' }], ['']],
    [
      [two, one],
      ['/0/id', '/1/id'],
    ],
    [[one, one], ['/1/id']],
    [[one, { title: 'two' }], ['/1/id']],
    [
      [null, { id: 2, title: '' }],
      ['/0', '/1/title'],
    ],
  ];
  for (const [after, expected] of refused) {
    assert.deepEqual(
      places(() => toPatchedArticles(before, after, bytesMax)),
      expected,
    );
  }
  const large = { id: 2, title: 'x'.repeat(bytesMax) };
  assert.equal(
    refusal(() => toPatchedArticles(before, [one, large], bytesMax)).code,
    'content_too_large',
  );
});
