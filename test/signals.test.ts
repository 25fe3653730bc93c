/** Signals that come before the server listens, or through npm. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { runProgram as run } from './support/program.ts';
import { projectFolder } from './support/source.ts';
import { until } from './support/until.ts';

const noNpm = spawnSync('npm', ['--version']).status !== 0 && 'there is no npm on this machine';

test('a signal ends at once a start while the store has not answered yet', async (t) => {
  const store = createServer().listen(0, '127.0.0.1');
  await once(store, 'listening');
  t.after(() => store.close());
  const { port } = store.address() as AddressInfo; // it listens on TCP
  const server = await run(t, { env: { STORE_URL: `postgres://a:b@127.0.0.1:${port}/c` } });
  const [socket] = (await once(store, 'connection')) as [Socket];
  socket.on('error', () => undefined);
  server.child.kill('SIGTERM');
  assert.equal((await server.ended()).code, 128 + 15);
  socket.destroy();
});

test('a signal reaches the server that npm start has started', { skip: noNpm }, async (t) => {
  const child = spawn('npm', ['start'], {
    cwd: projectFolder,
    env: { ...process.env, PORT: '0', HOST: '127.0.0.1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await until('a server that listens', () => /"event":"listening"/.test(output));
  child.kill('SIGTERM');
  // All that has the pipe has ended.
  await once(child, 'close');
  assert.match(output, /"event":"stopped"/);
});
