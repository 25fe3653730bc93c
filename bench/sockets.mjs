/**
 * `node bench/sockets.mjs`: resident memory of the service per WebSocket with one subscription.
 *
 * Options: --sockets 2000.
 */

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { idleMemory, start, stop } from './processes.mjs';
import { begin } from './report.mjs';

const { options, report } = begin({ sockets: 2_000 });
const query = 'subscription { commentAdded { id content postId } }';
const folder = mkdtempSync(join(tmpdir(), 'inkwell-sockets-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const program = join(import.meta.dirname, '../dist/server.js');
const service = await start(program, [], { UPLOAD_DIR: folder });
/** @type {WebSocket[]} */
const sockets = [];
// The first ones load the modules, and compile them.
await open(50);
const before = await idleMemory(service);
const count = options.sockets;
await open(count);
const kibibytes = (((await idleMemory(service)) - before) * 1024) / count;
report.table(
  'Memory of a WebSocket with one subscription',
  ['sockets', 'KiB each'],
  1,
)(String(count), kibibytes);
for (const socket of sockets) socket.terminate();
await stop(service);
report.end();

async function open(wanted) {
  for (let opened = 0; opened < wanted; opened += 1) sockets.push(await subscribe());
}

/** Subscribed: the answer to the ping behind the subscription has come. */
async function subscribe() {
  const socket = new WebSocket(`ws://127.0.0.1:${service.port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await once(socket, 'message');
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  socket.send(JSON.stringify({ type: 'ping' }));
  await once(socket, 'message');
  return socket;
}
