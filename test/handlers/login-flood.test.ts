/** A flood of logins keeps nobody waiting but those who log in (R21). */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The program itself, so that what is timed shares no thread with the two hundred. */
async function startProgram(t: Pick<TestContext, 'after'>): Promise<number> {
  const program = fileURLToPath(new URL('../../dist/server.js', import.meta.url));
  const env = { HOST: '127.0.0.1', PORT: '0' };
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(async () => {
    const ended = once(child, 'exit');
    child.kill();
    await ended;
  });
  let log = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    log += String(chunk);
    const port = /"listening","url":"http:\/\/127\.0\.0\.1:([0-9]+)"/.exec(log)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`The program ended: ${log}`);
}

/**
 * A connection that gives back the head of the answer to what it sends. A bare socket: two hundred
 * clients of HTTP would take longer than the server.
 */
async function openConnection(t: Pick<TestContext, 'after'>, port: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  return async (bytes: string): Promise<string> => {
    socket.write(bytes);
    const [head] = (await once(socket, 'data')) as [string];
    return head;
  };
}

function loginBytes(username: string, password: string): string {
  const body = JSON.stringify({ username, password });
  const headers = `Content-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST /auth/login HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n${body}`;
}

const hello = 'GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n';

test('two hundred wrong logins at once leave other requests quick', async (t) => {
  const port = await startProgram(t);
  const attackers = await Promise.all(Array.from({ length: 200 }, () => openConnection(t, port)));
  const visitor = await openConnection(t, port);
  const state = { pending: true };
  const guess = loginBytes('user', 'guess');
  const guesses = Promise.all(attackers.map((send) => send(guess))).finally(() => {
    state.pending = false;
  });
  let slowest = 0;
  let count = 0;
  while (state.pending) {
    const start = performance.now();
    assert.match(await visitor(hello), /^HTTP\/1\.1 200 /);
    slowest = Math.max(slowest, performance.now() - start);
    count += 1;
  }
  const statuses = new Set<string>();
  for (const head of await guesses) {
    const status = head.slice(9, 12);
    statuses.add(status);
    assert.equal(/\r\nRetry-After: [1-9]/.test(head), status !== '401');
  }
  assert.deepEqual(statuses, new Set(['401', '503']));
  // Two hundred checks one after the other take five seconds; the rest is for a busy machine, an
  // idle one is below a tenth of it.
  assert.ok(count > 10 && slowest < 1_500, `${count} answers, the slowest after ${slowest} ms`);
  // The account that was guessed at has to wait; another one gets in.
  assert.match(await visitor(loginBytes('user', 'password')), /^HTTP\/1\.1 429 /);
  assert.match(await visitor(loginBytes('admin', 'password')), /^HTTP\/1\.1 200 /);
  t.diagnostic(`${count} answers of /hello meanwhile, the slowest after ${slowest.toFixed()} ms`);
});
