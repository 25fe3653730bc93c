/** What a patch costs follows its size, whatever the names in it are. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distUrl, runInHeap } from '../support/small-heap.js';

const start = `
  import { toJsonPatch, toMergePatch } from '${distUrl('domain/patch.js')}';
  const list = (length, item) => Array.from({ length }, (_, index) => item(index)).join(',');
  const held = () => { gc(); return process.memoryUsage().heapUsed; };
`;

/** The bytes that stay taken after `make`, which runs beside `given` in a small heap. */
function taken(given: string, make: string): number {
  const script = `${start} const given = ${given}; const before = held();
    const made = ${make}; console.log(held() - before); globalThis.kept = [given, made];`;
  return Number(runInHeap(192, script));
}

// An object that gets a lone member of such a name by assignment takes 12,500 bytes.
for (const name of ['300', '1023', '33', '4294967294']) {
  test(`a mebibyte of members named ${name} is merged in proportion to its size`, () => {
    const length = Math.floor(1_000_000 / (name.length + 13));
    const given = `JSON.parse('{' + list(${length}, (index) => '"a' + index + '":{"${name}":1}') + '}')`;
    const bytes = taken(given, `toMergePatch(given)({ id: 1, title: 'a' })`);
    assert.ok(bytes < 40 * 1_048_576, `${bytes}`);
  });

  test(`a copy of members named ${name} costs what its source does`, () => {
    const given = `JSON.parse('{"from":[' + list(10_000, () => '{"${name}":1}') + ']}')`;
    const copy = `[{ op: 'copy', from: '/from', path: '/to' }]`;
    const bytes = taken(given, `toJsonPatch(${copy}, 1_048_576)(given)`);
    assert.ok(bytes < 6 * 1_048_576, `${bytes}`);
  });

  test(`operations on objects with members named ${name} copy no more than these hold`, () => {
    const nested = `'{"${name}":'.repeat(60) + '{"${name}":1}' + '}'.repeat(60)`;
    const given = `JSON.parse('[' + list(1_000, () => ${nested}) + ']')`;
    const path = `'/' + index + '/${name}'.repeat(60) + '/b'`;
    const patch = `Array.from({ length: 1_000 }, (_, index) => ({ op: 'add', path: ${path}, value: 1 }))`;
    const bytes = taken(given, `toJsonPatch(${patch}, 1_048_576)(given)`);
    assert.ok(bytes < 40 * 1_048_576, `${bytes}`);
  });
}
