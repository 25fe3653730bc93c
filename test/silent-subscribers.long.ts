/**
 * Subscribers that never read, in numbers, beside one that does (R30): what the silent ones cost
 * is bounded, and the reader gets every comment in order.
 *
 *     SUBSCRIBERS=1000 COMMENTS=20000 node --test dist-test/silent-subscribers.long.js
 */

import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import { assertServed, describeGap, startProber } from './support/prober.ts';
import { runProgram } from './support/program.ts';
import { connectReady, type HandClient } from './support/ws-clients.ts';

const subscribers = Number(process.env['SUBSCRIBERS'] ?? 200);
const comments = Number(process.env['COMMENTS'] ?? 2_000);
const commentBytes = 10_000;
/** An upper bound on a stored comment without its text. */
const recordBytes = 500;
const costMax = 300 * 1024 * 1024;
/** So many may be on their way to the reader; what can wait for it is twice as much. */
const aheadMax = 50;

async function subscribe(port: number, number: number): Promise<HandClient> {
  const client = await connectReady(port);
  // Ten groups: an event is executed once for each of them.
  const query = `subscription S${number % 10} { commentAdded { content } }`;
  client.send({ id: 's', type: 'subscribe', payload: { query } });
  // Operations are taken in order: once this is answered, the subscription runs.
  client.send({ id: 'q', type: 'subscribe', payload: { query: '{ __typename }' } });
  while ((await client.next()).type !== 'complete');
  return client;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

async function comment(url: string, content: string): Promise<number | undefined> {
  const asking = request(url, {
    agent,
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
  });
  asking.end(JSON.stringify({ content }));
  const [response] = await once(asking, 'response');
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

test(`${subscribers} silent subscribers cost a bounded part, and a reader gets all`, async (t) => {
  t.after(() => agent.destroy());
  const program = await runProgram(t, { measured: true });
  const { port, url } = await program.listening();
  const [post] = (await (await fetch(`${url}/posts`)).json()) as { readonly id: string }[];
  const before = await program.measure();

  const silent: HandClient[] = [];
  t.after(() => silent.forEach((client) => client.socket.terminate()));
  for (let number = 0; number < subscribers; number += 1) {
    const client = await subscribe(port, number);
    client.socket.pause();
    silent.push(client);
  }
  const reader = await subscribe(port, 0);
  const prober = startProber(t, { url, pid: program.child.pid });

  let read = 0;
  const readUntil = async (end: number): Promise<void> => {
    for (; read < end; read += 1) {
      const { payload } = await reader.next();
      const { content } = (payload as { data: { commentAdded: { content: string } } }).data
        .commentAdded;
      assert.equal(content.length, commentBytes);
      assert.equal(content.slice(0, content.indexOf(' ')), String(read));
    }
  };
  const padding = 'x'.repeat(commentBytes);
  for (let sent = 0; sent < comments; sent += 1) {
    const content = `${sent} ${padding}`.slice(0, commentBytes);
    assert.equal(
      await comment(`${url}/posts/${post?.id ?? ''}/comments`, content),
      201,
      `round ${sent}`,
    );
    await readUntil(sent - aheadMax);
  }
  await readUntil(comments);

  const gap = prober.stop();
  const after = await program.measure();
  const kept = comments * (commentBytes + recordBytes);
  const cost = after.residentMax - before.resident - kept;
  t.diagnostic(
    `${subscribers} subscribers, ${comments} comments: at most ${cost >> 20} MiB beyond the ` +
      `${kept >> 20} MiB of the comments, /hello ${describeGap(gap)}, ` +
      `event loop held ${after.heldLoop.toFixed()} ms`,
  );
  assert.ok(cost < costMax, `${cost} bytes`);
  assertServed(gap);

  // Who did not read was ended before it cost more than its part: told so, and cut off where it
  // did not read that either.
  for (const client of silent) client.socket.resume();
  const codes = await Promise.all(silent.map(async ({ closed }) => (await closed).code));
  const counts = [1013, 1006].map((code) => codes.filter((each) => each === code).length);
  t.diagnostic(`closed: ${counts[0]} told so with 1013, ${counts[1]} cut off (1006)`);
  const found = codes.filter((code) => code !== 1013 && code !== 1006);
  assert.deepEqual(found, []);
  await reader.close();
});
