/** Bytes of a body that arrive in pieces. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ArrivedBytes } from '../../dist/http/server/arrived-bytes.js';
import { releaseBuffers } from '../../dist/owned-buffers.js';

test('what was taken can be released: the next bytes, and a body that is left, do not need it', () => {
  const arrived = new ArrivedBytes();
  const piece = Buffer.from(new ArrayBuffer(8));
  arrived.append(piece);
  releaseBuffers([arrived.take()]);
  assert.equal(piece.length, 0, 'its memory was given back');
  assert.equal(arrived.take().length, 0);
  arrived.append(Buffer.from('ab'));
  arrived.append(Buffer.from('cd'));
  assert.equal(arrived.take().toString(), 'abcd');
});

test('the space for pieces is doubled, so that each byte is copied about twice', () => {
  const arrived = new ArrivedBytes();
  const capacities = [];
  for (let count = 0; count < 8; count += 1) {
    arrived.append(Buffer.alloc(10));
    capacities.push(arrived.capacity);
  }
  assert.deepEqual(capacities, [10, 40, 40, 40, 100, 100, 100, 100]);
});
