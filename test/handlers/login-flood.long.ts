/** A flood of logins keeps nobody waiting but those who log in (R21). */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { times } from '../support/lists.ts';
import { assertServed, describeGap, startProber } from '../support/prober.ts';
import { runProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

/**
 * A connection that gives back the head of the response to a login. A bare socket: two hundred
 * clients of HTTP would take longer than the server.
 */
async function openConnection(t: Pick<TestContext, 'after'>, port: number, address = '127.0.0.1') {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  return async (username: string, password = 'guess'): Promise<string> => {
    const body = JSON.stringify({ username, password });
    const head = ['POST /auth/login HTTP/1.1', 'Host: localhost', `X-Forwarded-For: ${address}`];
    const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    socket.write([...head, ...type, '', body].join('\r\n'));
    const [response] = (await once(socket, 'data')) as [string];
    return response;
  };
}

test('two hundred wrong logins at once leave other requests quick', async (t) => {
  const program = await runProgram(t);
  const { port } = await program.listening();
  const attackers = await Promise.all(times(200).map(() => openConnection(t, port)));
  const prober = startProber(t, { url: `http://127.0.0.1:${port}`, pid: program.child.pid });
  const statuses = new Set<string>();
  for (const head of await Promise.all(attackers.map((send) => send('user')))) {
    const status = head.slice(9, 12);
    statuses.add(status);
    assert.equal(/\r\nRetry-After: [1-9]/.test(head), status !== '401', head);
  }
  const gap = prober.stop();
  t.diagnostic(`${gap.calls} answers of /hello meanwhile, ${describeGap(gap)}`);
  assert.deepEqual(statuses, new Set(['401', '503']));
  assertServed(gap);
  // The account that was guessed at has to wait; another one gets in.
  const visitor = await openConnection(t, port);
  assert.match(await visitor('user', 'password'), /^HTTP\/1\.1 429 /);
  assert.match(await visitor('admin', 'password'), /^HTTP\/1\.1 200 /);
});

test('guesses from sixty addresses keep nobody out who has not guessed', async (t) => {
  const program = await runProgram(t, { env: { TRUSTED_PROXIES: '127.0.0.1' } });
  const { port } = await program.listening();
  const state = { isOver: false };
  let guesses = 0;
  const failed = new Set<number>();
  const guess = async (at: number): Promise<void> => {
    const send = await openConnection(t, port, `192.0.2.${at}`);
    while (!state.isOver) {
      const head = await send(`nobody ${guesses}`);
      assert.match(head, /^HTTP\/1\.1 (?:401|503) /);
      if (head.startsWith('401', 9)) failed.add(at);
      guesses += 1;
    }
  };
  const attack = Promise.all(times(60).map(guess));
  // Before its first failure an address is like any other.
  await until('60 failed logins', () => failed.size === 60);
  const statuses = new Set<string>();
  const visitor = await openConnection(t, port, '198.51.100.1');
  for (const _ of times(25)) statuses.add((await visitor('user', 'password')).slice(9, 12));
  state.isOver = true;
  await attack;
  t.diagnostic(`${guesses} guesses, the visitor got ${[...statuses].join(' ')}`);
  assert.deepEqual(statuses, new Set(['200']));
});
