/** The maximum memory of a process is the sum of all its limits, each with what it costs. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../dist/config.js';
import { newSpaceBytes, sumOfBounds } from '../dist/memory-plan.js';

const MiB = 1_048_576;
const nothing = {
  CONNECTIONS_MAX: '1',
  REQUEST_MEMORY_BYTES_MAX: '1048576',
  MEMORY_STORE_BYTES_MAX: '1048576',
  RESPONSE_CACHE_BYTES_MAX: '0',
};

function sum(env: Readonly<Record<string, string>>, newSpace = 0): number {
  return sumOfBounds(readConfig({ ...nothing, ...env }), newSpace);
}

/** Program, garbage, password checks, caches, documents, texts; then the settings, and files. */
const least = (112 + 64 + 64 + 14 + 24 + 2) * MiB + (98_304 + 2 * MiB) + 10_000 * 1_024;

test('with the least settings it is what the program and its own limits take', () => {
  assert.equal(sum({}), least);
});

for (const [what, env, more] of [
  ['a connection takes 96 KiB', { CONNECTIONS_MAX: '1001' }, 1_000 * 98_304],
  ['the memory of requests', { REQUEST_MEMORY_BYTES_MAX: '3145728' }, 2 * MiB],
  ['the records in memory', { MEMORY_STORE_BYTES_MAX: '3145728' }, 2 * MiB],
  ['a database takes 64 MiB in their place', { STORE_URL: 'sqlite:///a' }, 63 * MiB],
  ['cached responses', { RESPONSE_CACHE_BYTES_MAX: '5242880' }, 5 * MiB],
  ['ADMIN_PORT: 100 connections, 4 MiB', { ADMIN_PORT: '9464' }, 100 * 98_304 + 4 * MiB],
] as const) {
  test(what, () => {
    assert.equal(sum(env) - least, more);
  });
}

test('the new space of V8, and two thirds of it that was freed', () => {
  assert.deepEqual([newSpaceBytes('11.3.244'), newSpaceBytes('13.6.233')], [48 * MiB, 192 * MiB]);
  assert.equal(sum({}, 48 * MiB) - least, 80 * MiB);
});
