/** The examples that need no browser, as their README starts them. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startServer } from './support/server.js';
import { projectFolder } from './support/source.js';
import { noShell } from './support/shell.js';

test('the script sees the comment that it adds', { skip: noShell }, async (context) => {
  const server = await startServer(context);
  const script = join(projectFolder, 'examples', 'shell', 'comments.sh');
  const { stdout, stderr } = await promisify(execFile)('bash', [script, server.url]);
  assert.match(stdout, /^post: \/posts\/[0-9a-f-]{36}\ncomment: \{"data".*Seen by the script/);
  assert.equal(stderr, '');
});
