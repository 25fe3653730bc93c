/** The examples that need no browser, as their README starts them. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
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

test('a post is created, read and changed with fetch', async (context) => {
  const server = await startServer(context);
  const program = join(projectFolder, 'examples', 'clients', 'post.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [program, server.url]);
  assert.equal(stdout, '204\n');
});

test('the client in TypeScript is typed by the server, compiles and runs', async (context) => {
  const server = await startServer(context);
  const cwd = await mkdtemp(join(tmpdir(), 'inkwell-example-'));
  context.after(() => rm(cwd, { recursive: true, force: true }));
  await cp(join(projectFolder, 'examples', 'typescript'), cwd, { recursive: true });
  await symlink(join(projectFolder, 'node_modules'), join(cwd, 'node_modules'));
  const run = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, args, { cwd })).stdout;

  await run('generate.mjs', server.url);
  const tsc = join(projectFolder, 'node_modules', 'typescript', 'bin', 'tsc');
  assert.equal(await run(tsc, '-p', '.'), '');
  const printed = await run(join('generated', 'client.js'), server.url);
  assert.match(printed, /^TYPED \[ 'No cast needed\.' \]\nHELLO/);
});
