/** The prober of the long tests finds what it is for, and blames no server for the machine. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { gate } from './support/http-kit.ts';
import { assertServed, type Gap, startProber } from './support/prober.ts';

/** What is found of a server that answers so, until `calls` have come. */
async function probe(t: TestContext, calls: number, respond: RequestListener): Promise<Gap> {
  let left = calls;
  const enough = gate();
  const server = createServer((request, response) => {
    respond(request, response);
    left -= 1;
    if (left === 0) enough.open();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const prober = startProber(t, { url: `http://127.0.0.1:${port}` });
  await enough.opened;
  return prober.stop();
}

test('a server that answers at once is quick, one that holds its thread is found out', async (t) => {
  for (const milliseconds of [0, 4_000]) {
    let left = milliseconds;
    const gap = await probe(t, 10, (_request, response) => {
      // Asleep, not busy: the machine takes nothing from it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, left);
      left = 0;
      response.end();
    });
    assert.ok(gap.calls >= 9 && gap.waited >= milliseconds, JSON.stringify(gap));
    if (milliseconds === 0) assertServed(gap);
    else assert.throws(() => assertServed(gap), /at most/, `${milliseconds}`);
  }
});

test('one that refuses, or cuts its response, is found out', async (t) => {
  const failing: RequestListener[] = [
    (_request, response) => response.writeHead(503).end(),
    (_request, response) => void response.destroy(),
  ];
  for (const respond of failing) {
    const gap = await probe(t, 5, respond);
    assert.equal(gap.own, Infinity, JSON.stringify(respond));
  }
});
