/** How the memory of requests is shared out between the parts of the service. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createApp } from '../dist/app.js';
import { readConfig } from '../dist/config.js';
import { createDirectory } from './support/uploads.ts';

test('queued comments take an eighth of the memory of requests', async (t) => {
  const env = { REQUEST_MEMORY_BYTES_MAX: '8388608', UPLOAD_DIR: await createDirectory(t) };
  const clocks = { now: () => new Date(), monotonicNow: () => performance.now() };
  const app = await createApp(readConfig(env), { log: () => undefined, ...clocks });
  assert.equal(app.pool.bytesMax, 7_340_032);
  await app.close();
});
