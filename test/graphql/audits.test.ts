/** GraphQL over HTTP as the public audits of the package `graphql-http` ask (R25): all 61. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditServer } from 'graphql-http';
import { startServer } from '../support/server.ts';

test('every public audit of GraphQL over HTTP is passed', async (context) => {
  const server = await startServer(context);
  const results = await auditServer({ url: `${server.url}/graphql` });
  const failed = results.filter((result) => result.status !== 'ok');
  const found = failed.map(({ id, name, status, ...rest }) => ({ id, name, status, ...rest }));
  assert.deepEqual(found, []);
  assert.equal(results.length, 61);
});
