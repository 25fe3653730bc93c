/**
 * Stands between a server and PostgreSQL, on a port of its own: passes on everything, but not what
 * LISTEN and NOTIFY are about, as poolers and relatives of PostgreSQL do.
 */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import type { Ending } from './server.ts';

export interface ProxyOptions {
  /** `refuse`: LISTEN is an error. `ignore`: it is accepted, and no notification ever comes. */
  readonly listen: 'refuse' | 'ignore';
}

/** Takes connections in the place of a server. Returns its host and port. */
export async function startFront(
  context: Ending,
  connected: (socket: Socket) => void,
): Promise<string> {
  const sockets = new Set<Socket>();
  const front = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
    connected(socket);
  }).listen(0, '127.0.0.1');
  await once(front, 'listening');
  context.after(async () => {
    front.close();
    for (const socket of sockets) socket.destroy();
    await once(front, 'close');
  });
  return `127.0.0.1:${(front.address() as AddressInfo).port}`;
}

/** What ends one of them ends the other. */
export function endTogether(...sockets: readonly [Socket, Socket]): void {
  for (const [at, socket] of sockets.entries()) {
    const other = sockets[1 - at];
    socket.on('error', () => other?.destroy()).on('close', () => other?.destroy());
  }
}

/** The same database through the proxy, which is gone with the test that asked for it. */
export async function startPostgresProxy(
  context: Ending,
  target: string,
  { listen }: ProxyOptions,
) {
  const { hostname, port } = new URL(target);
  /** How many messages were changed or left out. */
  let touched = 0;
  const refuse = (message: Buffer): Buffer => {
    if (listen !== 'refuse' || !message.subarray(0, 64).includes('LISTEN')) return message;
    touched += 1;
    // As long as the true one, and a syntax error.
    return Buffer.from(message.toString('latin1').replace('LISTEN', 'REFUSE'), 'latin1');
  };
  const ignore = (message: Buffer): Buffer => {
    if (listen !== 'ignore' || message[0] !== notification) return message;
    touched += 1;
    return Buffer.alloc(0);
  };
  const url = new URL(target);
  url.host = await startFront(context, (near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) socket.setNoDelay();
    endTogether(near, far);
    near.pipe(messages(0, refuse)).pipe(far);
    far.pipe(messages(1, ignore)).pipe(near);
  });
  return { url: url.href, touched: () => touched };
}

/** NotificationResponse. */
const notification = 'A'.charCodeAt(0);

/**
 * Whole messages: one byte that tells the kind, then the length, which counts itself. The first
 * one of a client has no such byte: `kindBytes` is 0 for that side.
 */
function messages(kindBytes: 0 | 1, change: (message: Buffer) => Buffer): Transform {
  let kind: number = kindBytes;
  let rest: Buffer = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        if (rest.length < kind + 4) break;
        const length = kind + rest.readUInt32BE(kind);
        if (rest.length < length) break;
        this.push(change(rest.subarray(0, length)));
        rest = rest.subarray(length);
        kind = 1;
      }
      done();
    },
  });
}
