import assert from 'node:assert/strict';
import test from 'node:test';
import { decodeArticleDraft, patchArticle, patchArticles } from '../../dist/domain/articles.js';
import { toJsonPatch } from '../../dist/domain/patch.js';
import { AppError } from '../../dist/errors.js';
import type { Json } from '../../dist/store/model.js';
import { type ArticleValue, toArticle } from '../support/article-texts.ts';

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

/** A patch that replaces the whole document. */
function replacing(value: Json): ReturnType<typeof toJsonPatch> {
  return toJsonPatch([{ op: 'replace', path: '', value }], bytesMax);
}

function patched(before: ArticleValue, after: Json): string {
  return patchArticle(toArticle(before), replacing(after), bytesMax).json;
}

test('an article is an open document that is kept as it was sent', () => {
  assert.deepEqual(decodeArticleDraft(full, bytesMax), { id: 7, json: JSON.stringify(full) });
  const least = { id: undefined, json: '{"title":" x "}' };
  assert.deepEqual(decodeArticleDraft({ title: ' x ' }, bytesMax), least);
});

test('a date-time with an offset is accepted and kept as sent', () => {
  const publishedAt = '2024-05-01T10:15:30.120+02:00[Europe/Berlin]';
  const { json } = decodeArticleDraft({ title: 'x', publishedAt }, bytesMax);
  assert.equal(json, JSON.stringify({ title: 'x', publishedAt }));
});

test('every wrong member is named by its place', () => {
  const rows: readonly (readonly [Json, readonly string[]])[] = [
    ...[null, [], 'text', 1, true].map((body) => [body, ['']] as const),
    [{}, ['/title']],
    ...['', ' \u2003\t', 1, null].map((title) => [{ title }, ['/title']] as const),
    ...[0, -1, 1.5, '1', 2 ** 53].map((id) => [{ title: 'x', id }, ['/id']] as const),
    ...['Ada', []].map((author) => [{ title: 'x', author }, ['/author']] as const),
    [
      { title: 'x', author: { givenName: 1, familyName: 2 } },
      ['/author/givenName', '/author/familyName'],
    ],
    ...[1, {}].map((content) => [{ title: 'x', content }, ['/content']] as const),
    ...['tag', {}].map((tags) => [{ title: 'x', tags }, ['/tags']] as const),
    [{ title: 'x', tags: ['a', 1, 'b', null] }, ['/tags/1', '/tags/3']],
    ...[0, '', '2024-02-30T10:00', '2024-05-01', '2024-05-01T24:00'].map(
      (publishedAt) => [{ title: 'x', publishedAt }, ['/publishedAt']] as const,
    ),
    [
      { id: 'x', content: 1, tags: 1, author: 1, publishedAt: 1 },
      ['/id', '/title', '/author', '/content', '/tags', '/publishedAt'],
    ],
  ];
  for (const [body, expected] of rows) {
    const found = places(() => decodeArticleDraft(body, bytesMax));
    assert.deepEqual(found, expected, JSON.stringify(body));
  }
});

test('an article may be as large as allowed, in bytes of JSON, and no larger', () => {
  for (const character of ['x', 'é', '😀', '"', '\u0001']) {
    const body = (length: number) => ({ title: 'x', content: character.repeat(length) });
    const size = (length: number): number => Buffer.byteLength(JSON.stringify(body(length)));
    let count = 1;
    while (size(count + 1) <= bytesMax) count += 1;
    assert.doesNotThrow(() => decodeArticleDraft(body(count), bytesMax));
    const error = refusal(() => decodeArticleDraft(body(count + 1), bytesMax));
    assert.equal(error.code, 'content_too_large', character);
  }
});

test('an article nested 64 levels is kept, one of 65 is refused', () => {
  const nest = (levels: number): Json => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  const before = { id: 1, title: 'x' };
  assert.ok(patched(before, { ...before, deep: nest(63) }));
  const found = places(() => patched(before, { ...before, deep: nest(64) }));
  assert.deepEqual(found, ['']);
});

test('an article has 50,000 values after a patch too, and no more (R39)', () => {
  const before = { id: 1, title: 'x' };
  const list = (length: number): Json => ({ ...before, l: Array.from({ length }, () => 0) });
  const patch = (length: number): unknown =>
    patchArticle(toArticle(before), replacing(list(length)), 1_048_576);
  assert.doesNotThrow(() => patch(50_000 - 7));
  assert.equal(refusal(() => patch(50_000 - 6)).code, 'content_too_large');
});

test('the articles that one patch uses have at most 100,000 values together', () => {
  const many = Array.from({ length: 33_000 }, () => 0);
  const articles = [1, 2, 3, 4].map((id) => toArticle({ id, title: 'x', many }));
  const touch = (count: number): unknown => {
    const ids = Array.from({ length: count }, (_, index) => index);
    const operations = ids.map((index) => ({ op: 'remove', path: `/${index}/many/0` }));
    return patchArticles(articles, toJsonPatch(operations, bytesMax), 1_048_576);
  };
  assert.doesNotThrow(() => touch(3));
  assert.equal(refusal(() => touch(4)).code, 'content_too_large');
});
