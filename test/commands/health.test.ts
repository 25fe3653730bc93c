/** `--healthcheck`: how long it waits for the server. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCommandHere } from '../support/command.ts';

test('a health check has three seconds', async (t) => {
  const timeout = t.mock.method(AbortSignal, 'timeout');
  const { code } = await runCommandHere(['--healthcheck'], { env: { PORT: '1' } });
  assert.equal(code, 1);
  assert.deepEqual(
    timeout.mock.calls.map(({ arguments: [milliseconds] }) => milliseconds),
    [3_000],
  );
});
