/** Documents by their hash, and the bounded memory for them. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTrustedDocuments } from '../../dist/graphql/documents/trusted-documents.js';
import { decodeRequest } from '../../dist/graphql/http/messages.js';
import { BoundedMap } from '../../dist/bounded-map.js';
import { startGraphql, type TestGraphql } from '../support/graphql.ts';
import { words } from '../support/lists.ts';
import { createDirectory } from '../support/uploads.ts';

const query = '{ allPosts { id } }';
const sha256Hash = createHash('sha256').update(query).digest('hex');

function ask(graphql: TestGraphql, persistedQuery: unknown, text?: string): readonly string[] {
  const extensions = { persistedQuery };
  return graphql.refusalOf(decodeRequest({ query: text, extensions }));
}

test('what is no persisted query is refused', () => {
  const graphql = startGraphql();
  const other = { version: 2, sha256Hash };
  for (const odd of [null, 'x', 5, [], {}, other, { version: 1, sha256Hash: 5 }]) {
    assert.deepEqual(ask(graphql, odd), ['BAD_USER_INPUT'], JSON.stringify(odd));
  }
  assert.throws(() => ask(graphql, undefined), { code: 'invalid_graphql_request' });
});

test('with trusted documents nothing else runs', () => {
  const trustedDocuments = new Map([[sha256Hash, query]]);
  const graphql = startGraphql({ trustedDocuments });
  const other = '{ allPosts { title } }';
  const otherHash = createHash('sha256').update(other).digest('hex');
  for (const [hash, text, ...refused] of [
    [sha256Hash.toUpperCase()],
    [sha256Hash, query],
    [undefined, query],
    [undefined, other, 'BAD_USER_INPUT'],
    [otherHash, other, 'BAD_USER_INPUT'],
    [sha256Hash, other, 'BAD_USER_INPUT'],
    ['__proto__', undefined, 'BAD_USER_INPUT'],
  ] as const) {
    const asked = hash === undefined ? undefined : { version: 1, sha256Hash: hash };
    assert.deepEqual(ask(graphql, asked, text), refused, `${hash} ${text}`);
  }
  assert.throws(() => ask(graphql, undefined), { code: 'invalid_graphql_request' });
});

test('a manifest is read, and a bad one names its setting', async (t) => {
  const folder = await createDirectory(t);
  const path = join(folder, 'manifest.json');
  assert.equal(await readTrustedDocuments(''), undefined);
  await writeFile(path, JSON.stringify({ [sha256Hash.toUpperCase()]: query }));
  assert.deepEqual(await readTrustedDocuments(path), new Map([[sha256Hash, query]]));
  // As Apollo's tools write it.
  const operations = [{ id: 'ABC', name: 'A', type: 'query', body: query }];
  await writeFile(path, JSON.stringify({ format: 'apollo-persisted-query-manifest', operations }));
  assert.deepEqual(await readTrustedDocuments(path), new Map([['abc', query]]));
  const bads = ['', '{', '[]', '5', 'null', '{"a": 1}', '{"operations":[{"id":"a"}]}'];
  for (const bad of bads) {
    await writeFile(path, bad);
    await assert.rejects(readTrustedDocuments(path), /^ConfigError: TRUSTED_DOCUMENTS /, bad);
  }
  const none = readTrustedDocuments(join(folder, 'none'));
  await assert.rejects(none, /TRUSTED_DOCUMENTS .* cannot be read/);
});

test('texts are kept in 2 MiB: of those with 1,000 characters, the last 929', () => {
  const { refusalOf } = startGraphql();
  const hashes = Array.from({ length: 930 }, (_, at) => {
    const text = `{ __typename }#${at}`.padEnd(1_000, ' ');
    const documentHash = createHash('sha256').update(text).digest('hex');
    assert.deepEqual(refusalOf({ query: text, documentHash }), [], `${at}`);
    return documentHash;
  });
  const codes = [1, 0, 929].map((at) => refusalOf({ documentHash: hashes[at] ?? '' }).join());
  assert.deepEqual(codes, ['', 'PERSISTED_QUERY_NOT_FOUND', '']);
});

test('a bounded map keeps what was used last, within its bound', () => {
  const map = new BoundedMap<number>(30);
  const shown = (): string =>
    words('a b c d e f g')
      .filter((name) => map.get(name) !== undefined)
      .join('');
  for (const name of words('a b c')) map.set(name, 1, 10);
  assert.equal(map.use('a'), 1);
  for (const [name, size, kept] of [
    ['d', 10, 'acd'],
    ['e', 25, 'e'],
    ['f', 31, 'e'],
    ['e', 5, 'e'],
    ['g', 25, 'eg'],
  ] as const) {
    map.set(name, 2, size);
    assert.equal(shown(), kept, name);
  }
});
