/** A flood of logins keeps nobody waiting but those who log in (R21). */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { assertServed, describeGap, startProber } from '../support/prober.ts';
import { runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

/**
 * A connection that gives back the head of the response to what it sends. A bare socket: two hundred
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

function loginBytes(username: string, password: string, address = '127.0.0.1'): string {
  const body = JSON.stringify({ username, password });
  const forwarded = `X-Forwarded-For: ${address}`;
  const headers = `${forwarded}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `POST /auth/login HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n${body}`;
}

test('two hundred wrong logins at once leave other requests quick', async (t) => {
  const program = await runProgram(t);
  const { port } = await program.listening();
  const attackers = await Promise.all(Array.from({ length: 200 }, () => openConnection(t, port)));
  const url = `http://127.0.0.1:${port}`;
  const prober = startProber(t, { url, pid: program.child.pid });
  const guess = loginBytes('user', 'guess');
  const statuses = new Set<string>();
  for (const [at, head] of (await Promise.all(attackers.map((send) => send(guess)))).entries()) {
    const status = head.slice(9, 12);
    statuses.add(status);
    assert.equal(/\r\nRetry-After: [1-9]/.test(head), status !== '401', `head ${at}`);
  }
  const gap = prober.stop();
  t.diagnostic(`${gap.calls} answers of /hello meanwhile, ${describeGap(gap)}`);
  assert.deepEqual(statuses, new Set(['401', '503']));
  assertServed(gap);
  // The account that was guessed at has to wait; another one gets in.
  const visitor = await openConnection(t, port);
  assert.match(await visitor(loginBytes('user', 'password')), /^HTTP\/1\.1 429 /);
  assert.match(await visitor(loginBytes('admin', 'password')), /^HTTP\/1\.1 200 /);
});

test('guesses from sixty addresses keep nobody out who has not guessed', async (t) => {
  const program = await runProgram(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } });
  const { port } = await program.listening();
  const state = { isOver: false };
  let guesses = 0;
  const failed = new Set<number>();
  const guess = async (at: number): Promise<void> => {
    const send = await openConnection(t, port);
    while (!state.isOver) {
      const head = await send(loginBytes(`nobody ${guesses}`, 'guess', `192.0.2.${at}`));
      assert.match(head, /^HTTP\/1\.1 (?:401|503) /);
      if (head.startsWith('401', 9)) failed.add(at);
      guesses += 1;
    }
  };
  const attack = Promise.all(Array.from({ length: 60 }, (_, at) => guess(at)));
  // Before its first failure an address is like any other.
  await until('60 failed logins', () => failed.size === 60);
  const statuses: string[] = [];
  const visitor = await openConnection(t, port);
  for (let at = 0; at < 25; at += 1) {
    const head = await visitor(loginBytes('user', 'password', '198.51.100.1'));
    statuses.push(head.slice(9, 12));
  }
  state.isOver = true;
  await attack;
  t.diagnostic(`${guesses} guesses, the visitor got ${statuses.join(' ')}`);
  assert.deepEqual(new Set(statuses), new Set(['200']));
});
