/** What a patch costs follows its size, whatever the names in it are. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distUrl, runInHeap } from '../support/small-heap.js';

const start = `
  import { toJsonPatch, toMergePatch } from '${distUrl('domain/patch.js')}';
  const list = (length, item) => Array.from({ length }, (_, index) => item(index)).join(',');
  const held = () => { gc(); return process.memoryUsage().heapUsed; };
`;

const mebibytes = (count: number): number => count * 1_048_576;

interface Work {
  readonly given: string;
  /** An expression with `given` in it. */
  readonly make: string;
}

/** The bytes that stay taken after each work; one process with a small heap does them in turn. */
function taken(works: readonly Work[]): number[] {
  const measured = works.map(
    ({ given, make }) => `(() => {
      const given = ${given};
      const before = held();
      globalThis.kept = [given, ${make}];
      const bytes = held() - before;
      globalThis.kept = undefined;
      return bytes;
    })()`,
  );
  const script = `${start} console.log(JSON.stringify([${measured.join(', ')}]));`;
  return JSON.parse(runInHeap(192, script)) as number[];
}

// An object that gets a lone member of such a name by assignment takes 12,500 bytes.
for (const name of ['300', '1023', '33', '4294967294']) {
  test(`patches of members named ${name} cost in proportion to their size`, () => {
    const length = Math.floor(1_000_000 / (name.length + 13));
    const merged = {
      given: `JSON.parse('{' + list(${length}, (index) => '"a' + index + '":{"${name}":1}') + '}')`,
      make: `toMergePatch(given)({ id: 1, title: 'a' })`,
    };
    // A copy costs what its source does.
    const copied = {
      given: `JSON.parse('{"from":[' + list(4_000, () => '{"${name}":1}') + ']}')`,
      make: `toJsonPatch([{ op: 'copy', from: '/from', path: '/to' }], 1_048_576)(given)`,
    };
    // Operations copy no more than the objects on their way hold.
    const nested = `'{"${name}":'.repeat(60) + '{"${name}":1}' + '}'.repeat(60)`;
    const count = 1_000;
    const path = `'/' + index + '/${name}'.repeat(60) + '/b'`;
    const patch = `Array.from({ length: ${count} }, (_, index) => ({ op: 'add', path: ${path}, value: 1 }))`;
    const operated = {
      given: `JSON.parse('[' + list(${count}, () => ${nested}) + ']')`,
      make: `toJsonPatch(${patch}, 1_048_576)(given)`,
    };
    const [merge = NaN, copy = NaN, operations = NaN] = taken([merged, copied, operated]);
    assert.ok(merge < mebibytes(40), `merged: ${merge}`);
    assert.ok(copy < mebibytes(6), `copied: ${copy}`);
    assert.ok(operations < mebibytes(40), `operated: ${operations}`);
  });
}
