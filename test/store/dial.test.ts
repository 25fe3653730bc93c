/** How a node calls PostgreSQL: what it asks a connection for, and how often while it is away. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer as listen, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { createServer } from '../../dist/store/postgres/connection.js';
import { openStore } from '../../dist/store/postgres/open.js';
import { migrate } from '../../dist/store/postgres/schema.js';
import { driverOptions } from '../support/driver-options.ts';
import { testAtLength } from '../support/long.ts';
import { until } from '../support/until.ts';

/** An error as the server sends it, in place of an answer to the first message. */
function toError(code: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mno\0\0`);
  const head = Buffer.from('E0000');
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
}

/** A server that answers each connection as `answer` says. */
async function startServer(t: TestContext, answer: (socket: Socket, message: Buffer) => void) {
  const sockets = new Set<Socket>();
  const server = listen((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', (message) => answer(socket, message));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has one
  return `postgres://a@127.0.0.1:${port}/b`;
}

test('a connection is asked for with the limits of its statements and locks', async (t) => {
  const asked: string[] = [];
  const url = await startServer(t, (socket, message) => {
    asked.push(message.toString('latin1'));
    socket.end(toError('28P01'));
  });
  const server = await createServer(url);
  await assert.rejects(server.connect({ statementSeconds: 7 }));
  assert.match(asked[0] ?? '', /\0statement_timeout\0(?:7000)\0/);
  assert.match(asked[0] ?? '', /\0lock_timeout\0(?:1000)\0/);
});

test('a connection has five seconds to open', async (t) => {
  const url = await startServer(t, (socket) => void socket);
  const timers = t.mock.method(globalThis, 'setTimeout');
  const server = await createServer(url);
  const connecting = server.connect({ statementSeconds: 7 });
  const delays = timers.mock.calls.map(({ arguments: [, milliseconds] }) => milliseconds);
  assert.ok(delays.includes(5_000), delays.join());
  // Not waited for: the server ends it with the test.
  connecting.catch(() => undefined);
});

test('a start asks a database that is away four times a second, logs it once, and has 600 s', async (t) => {
  const asked: string[] = [];
  let isBack = false;
  const url = await startServer(t, (socket, message) => {
    asked.push(message.toString('latin1'));
    // A wrong password is no reason to wait.
    if (isBack) socket.end(toError('28P01'));
    else socket.destroy();
  });
  const logged: string[] = [];
  const options = driverOptions({ log: (_level, event) => void logged.push(event) });
  const opening = openStore(url, { ...options, startSeconds: 30, mayCreate: true });
  const refused = assert.rejects(opening, /STORE_URL/);
  await until('three attempts', () => asked.length >= 3, 4);
  isBack = true;
  await refused;
  assert.deepEqual(logged, ['waiting for the database']);
  assert.match(asked[0] ?? '', /\0statement_timeout\0(?:600000)\0/);
});

testAtLength('a start asks for tables that are locked every three seconds', async (t) => {
  let asked = 0;
  const url = await startServer(t, (socket) => {
    asked += 1;
    socket.end(toError(asked === 1 ? '55P03' : '28P01'));
  });
  const logged: string[] = [];
  const options = driverOptions({ log: (_level, event) => void logged.push(event) });
  const opening = openStore(url, { ...options, startSeconds: 1, mayCreate: true });
  const refused = opening.then(
    () => 'opened',
    () => 'refused',
  );
  assert.equal(await Promise.race([refused, pause(2_900, 'waits')]), 'waits');
  assert.equal(await Promise.race([refused, pause(3_000, 'waits')]), 'refused');
  assert.deepEqual(logged, ['waiting for the tables of the database']);
});

test('a migration waits half a second for a table that others use', async () => {
  const scripts: string[] = [];
  const stop = new Error('no more');
  const connection = {
    run: () => undefined,
    end: () => undefined,
    runScript: (text: string) => {
      scripts.push(text);
      return Promise.reject(stop);
    },
  };
  await assert.rejects(
    migrate(connection, () => undefined),
    stop,
  );
  assert.match(scripts[0] ?? '', /pg_advisory_xact_lock\(\d+\);\s+SET LOCAL lock_timeout = 500;/);
});
