/** Conditional changes of records: what is compared is what the store is asked to change (R37). */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeRecord } from '../../dist/handlers/changes.js';
import type { HttpRequest } from '../../dist/http/message.js';

for (const [ifMatch, isExpected] of [
  ['*', true],
  [undefined, false],
] as const) {
  const what = isExpected ? 'only as it was when its tag was compared' : 'as it is';
  test(`with If-Match ${ifMatch} a record is changed ${what}`, async () => {
    const header = (name: string): string | undefined =>
      name === 'if-match' ? ifMatch : undefined;
    const record = { id: '1' };
    const expected: unknown[] = [];
    const store = { requests: { find: () => undefined } };
    const route = {
      get: async () => ({ ...record }),
      tagOf: JSON.stringify,
      viewerOf: () => undefined,
      store,
    };
    const { status } = await changeRecord({ header } as HttpRequest, route, (_current, options) => {
      expected.push(options.expected);
      // Another client was first: the record is read and compared again.
      return expected.length > 1;
    });
    assert.equal(status, 204);
    const found = isExpected ? record : undefined;
    assert.deepEqual(expected, [found, found]);
  });
}
