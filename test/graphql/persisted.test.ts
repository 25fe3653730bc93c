/** Documents by their hash, and the bounded memory for them. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readTrustedDocuments } from '../../dist/graphql/documents/trusted-documents.js';
import { decodeRequest } from '../../dist/graphql/http/messages.js';
import { BoundedMap } from '../../dist/bounded-map.js';
import { startGraphql, type TestGraphql } from '../support/graphql.ts';

const query = '{ allPosts { id } }';
const sha256Hash = createHash('sha256').update(query).digest('hex');

function ask(graphql: TestGraphql, persistedQuery: unknown, text?: string): readonly string[] {
  const extensions = { persistedQuery };
  return graphql.refusalOf(decodeRequest({ query: text, extensions }));
}

test('what is no persisted query is refused', () => {
  const graphql = startGraphql();
  const bad = [
    { version: 2, sha256Hash },
    { version: 1, sha256Hash: 5 },
  ];
  for (const odd of [null, 'x', 5, [], {}, ...bad]) {
    assert.deepEqual(ask(graphql, odd), ['BAD_USER_INPUT'], JSON.stringify(odd));
  }
  assert.throws(() => ask(graphql, undefined), { code: 'invalid_graphql_request' });
});

test('with trusted documents nothing else runs', () => {
  const trustedDocuments = new Map([[sha256Hash, query]]);
  const graphql = startGraphql({ trustedDocuments });
  assert.deepEqual(ask(graphql, { version: 1, sha256Hash: sha256Hash.toUpperCase() }), []);
  assert.deepEqual(ask(graphql, { version: 1, sha256Hash }, query), []);
  assert.deepEqual(ask(graphql, undefined, query), []);
  const other = '{ allPosts { title } }';
  const otherHash = createHash('sha256').update(other).digest('hex');
  assert.deepEqual(ask(graphql, undefined, other), ['BAD_USER_INPUT']);
  assert.deepEqual(ask(graphql, { version: 1, sha256Hash: otherHash }, other), ['BAD_USER_INPUT']);
  assert.deepEqual(ask(graphql, { version: 1, sha256Hash }, other), ['BAD_USER_INPUT']);
  assert.deepEqual(ask(graphql, { version: 1, sha256Hash: '__proto__' }), ['BAD_USER_INPUT']);
  assert.throws(() => ask(graphql, undefined), { code: 'invalid_graphql_request' });
});

test('a manifest is read, and a bad one names its setting', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-test-'));
  context.after(() => rm(folder, { recursive: true }));
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
  await assert.rejects(
    readTrustedDocuments(join(folder, 'none')),
    /TRUSTED_DOCUMENTS .* cannot be read/,
  );
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
  map.set('a', 1, 10);
  map.set('b', 2, 10);
  map.set('c', 3, 10);
  assert.equal(map.get('b'), 2);
  assert.equal(map.use('a'), 1);
  map.set('d', 4, 10);
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((text) => map.get(text)),
    [1, undefined, 3, 4],
  );
  map.set('e', 5, 25);
  assert.deepEqual(
    ['a', 'c', 'd', 'e'].map((text) => map.get(text)),
    [undefined, undefined, undefined, 5],
  );
  map.set('f', 6, 31);
  assert.equal(map.get('f'), undefined);
  assert.equal(map.get('e'), 5);
  map.set('e', 7, 5);
  map.set('g', 8, 25);
  assert.deepEqual([map.get('e'), map.get('g')], [7, 8]);
});
