import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { AppError } from '../../dist/errors.js';
import type { Json } from '../../dist/store/model.js';
import { patch, refusal } from '../support/json-patch.js';
import { cases } from '../support/long.js';
import { assertWithin } from '../support/pace.js';

test('a patch that doubles the document is refused soon, and within 20 MiB of memory', () => {
  const ways: readonly (readonly [Json, { from: string; path: string }])[] = [
    [{ a: ['text', 'text'] }, { from: '/a', path: '/a/-' }],
    [{ a: [[], {}] }, { from: '/a', path: '/a/0' }],
    [{ a: { b: 'x'.repeat(50_000) } }, { from: '/a', path: '/a/c' }],
    [{ a: ['long text '.repeat(1_000)] }, { from: '/a', path: '/a/-' }],
  ];
  for (const [document, copy] of ways) {
    const operations = Array.from({ length: 44 }, () => ({ op: 'copy', ...copy }));
    const started = process.cpuUsage();
    const memory = process.memoryUsage().heapUsed;
    const code = refusal(document, operations);
    const grown = process.memoryUsage().heapUsed - memory;
    const { user, system } = process.cpuUsage(started);
    assert.equal(code, 'content_too_large', copy.path);
    assert.ok(grown < 20 * 1_048_576, `${grown} bytes`);
    assertWithin(500, (user + system) / 1_000);
  }
});

test('copies that are replaced again count too', () => {
  const document = { a: 'x'.repeat(100_000) };
  const operations = Array.from({ length: 11 }, () => ({ op: 'copy', from: '/a', path: '/b' }));
  assert.equal(refusal(document, operations), 'content_too_large');
  assert.doesNotThrow(() => patch(document, operations.slice(1)));
});

test('a copy deeper than 64 levels is refused', () => {
  const nest = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  const deeper = [
    { op: 'add', path: `/a${'/0'.repeat(9)}`, value: JSON.parse(nest(60)) },
    { op: 'copy', from: '/a', path: '/b' },
  ];
  const document = JSON.parse(`{"a":${nest(9)}}`);
  assert.equal(refusal(document, deeper), 'invalid_body');
});

test('no patch changes its operations or what objects inherit', () => {
  const token = fc.constantFrom('a', 'b', '0', '1', '-', '', 'constructor', 'toString', 'length');
  const pointer = fc.array(token, { maxLength: 3 }).map((all) => all.map((t) => `/${t}`).join(''));
  const value = fc.jsonValue({ maxDepth: 2 });
  const op = fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test');
  const operations = fc.array(fc.record({ op, path: pointer, from: pointer, value }));
  const document = fc.dictionary(token, value);
  const inherited = Object.getOwnPropertyNames(Object.prototype).length;
  fc.assert(
    fc.property(document, operations, (given, body) => {
      const before = JSON.stringify(body);
      try {
        JSON.stringify(patch(given as Json, body));
      } catch (error) {
        assert.ok(error instanceof AppError, String(error));
      }
      assert.equal(JSON.stringify(body), before);
      assert.equal(Object.getOwnPropertyNames(Object.prototype).length, inherited);
    }),
    { numRuns: cases(2_000) },
  );
});

interface SuiteRow {
  readonly comment?: string;
  readonly doc: Json;
  readonly patch: unknown;
  readonly expected?: Json;
  readonly error?: string;
  readonly disabled?: boolean;
}

function assertRow({ comment, doc, patch: operations, error, expected }: SuiteRow): void {
  const name = comment ?? JSON.stringify(operations);
  if (error !== undefined) {
    assert.match(refusal(doc, operations), /^(?:invalid_patch|patch_not_applicable)$/, name);
  } else {
    const result = patch(doc, operations);
    if (expected !== undefined) assert.deepEqual(result, expected, name);
  }
}

for (const [file, enabled] of [
  ['tests.json', 75],
  ['spec_tests.json', 16],
] as const) {
  test(`all ${enabled} rows of the public suite's ${file} hold`, () => {
    const path = fileURLToPath(import.meta.resolve(`json-patch-test-suite/${file}`));
    const rows = (JSON.parse(readFileSync(path, 'utf8')) as SuiteRow[]).filter(
      (row) => row.disabled !== true,
    );
    assert.equal(rows.length, enabled);
    for (const row of rows) assertRow(row);
  });
}
