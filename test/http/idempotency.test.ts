/** What tells one request under a key from another (R40). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toFingerprint } from '../../dist/http/idempotency.js';
import type { HttpRequest } from '../../dist/http/message.js';

test('each of method, path, media type and body makes another request', () => {
  const prints = new Set<string>();
  for (const [method, path, type, bodyDigest] of [
    ['PUT', '/a', 'b/c', 'd'],
    ['PATCH', '/a', 'b/c', 'd'],
    ['PUT', '/A', 'b/c', 'd'],
    ['PUT', '/a', 'b/C', 'd'],
    ['PUT', '/a', 'b/c', 'D'],
  ] as const) {
    const header = (name: string): string | undefined =>
      name === 'content-type' ? type : undefined;
    const request = { method, path, bodyDigest, header } as HttpRequest;
    const print = toFingerprint(request);
    assert.equal(print.length, 22);
    assert.equal(toFingerprint(request), print);
    prints.add(print);
  }
  assert.equal(prints.size, 5);
});
