/** What an event of a group becomes on its way to many clients, and how much may wait for one. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SharedEvent } from '../../dist/graphql/events/shared-event.js';
import { createQueueLimit } from '../../dist/graphql/events/subscriber.js';
import { MemoryPool } from '../../dist/memory-pool.js';

/** Makes the pieces of an event of so many bytes for a prefix. */
function event(length: number) {
  const facts = { id: '1', position: 1, isSameIteration: false, isCurrent: () => true };
  const shared = new SharedEvent(Buffer.alloc(length, 'x'), new MemoryPool(1_000_000), facts);
  const suffix = Buffer.from('}');
  return (prefix: string) => shared.toPieces(prefix, suffix, () => Buffer.from('h'));
}

for (const [length, pieces] of [
  [2_048, 1],
  [2_049, 3],
] as const) {
  test(`an event of ${length} bytes is sent in ${pieces} pieces`, () => {
    const made = event(length)('{');
    assert.equal(made.length, pieces);
    assert.equal(Buffer.concat(made).toString(), `h{${'x'.repeat(length)}}`);
  });
}

test('the bytes for 64 prefixes are kept, those for more are made again', () => {
  const toPieces = event(10);
  const first = Array.from({ length: 65 }, (_, at) => toPieces(`${at}`));
  const again = first.map((pieces, at) => toPieces(`${at}`) === pieces);
  assert.deepEqual(again, [...Array<boolean>(64).fill(true), false]);
});

for (const [clients, bytes] of [
  [0, 524_288],
  [1, 524_288],
  [128, 524_288],
  [256, 262_144],
  [1_024, 65_536],
  [10_000, 65_536],
] as const) {
  test(`of 64 MiB ${bytes} bytes may wait for one of ${clients} clients`, () => {
    const requestMemoryBytesMax = 64 * 1024 * 1024;
    assert.equal(createQueueLimit({ requestMemoryBytesMax }, { size: clients })(), bytes);
  });
}
