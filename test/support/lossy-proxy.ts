/**
 * A proxy that loses: a connection to it, which carries one request, has one of these fates.
 *
 * - `whole`: it is forwarded both ways.
 * - `unsent`: the request is cut at a random byte.
 * - `unanswered`: the request is forwarded, and the connection ends with the first byte of its
 *   response, which says that the server has done it.
 * - `torn`: the response is cut at a random byte.
 *
 * And a client that sends a write again, under its key, until it is answered.
 */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Ending } from './server.ts';

const fates = ['whole', 'unsent', 'unanswered', 'torn'] as const;

/** `ports`: of the servers that there are now. One request of `lossEvery` is lost, on average. */
export async function startLossyProxy(
  context: Ending,
  ports: () => readonly number[],
  lossEvery: number,
) {
  /** Requests by their fate. */
  const counts = { whole: 0, unsent: 0, unanswered: 0, torn: 0 };
  const open = new Set<Socket>();
  const silent = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const isLost = Math.random() * lossEvery < 1;
    const fate = isLost ? (fates[1 + Math.floor(Math.random() * 3)] ?? 'torn') : 'whole';
    counts[fate] += 1;
    const all = ports();
    const port = all[Math.floor(Math.random() * all.length)] ?? 0;
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const end = (): void => {
      if (silent.has(client)) return;
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket
        .on('error', end)
        .on('end', end)
        .on('close', () => {
          open.delete(socket);
          end();
        });
    }
    client.on('data', (chunk: Buffer) => {
      if (silent.has(client)) return undefined;
      if (fate !== 'unsent') return upstream.write(chunk);
      upstream.write(chunk.subarray(0, Math.random() * chunk.length), end);
      return undefined;
    });
    upstream.on('data', (chunk: Buffer) => {
      if (silent.has(client)) return undefined;
      if (fate === 'unanswered') return end();
      if (fate !== 'torn') return client.write(chunk);
      client.write(chunk.subarray(0, Math.random() * chunk.length), end);
      return undefined;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of open) if (!silent.has(socket)) socket.destroy();
  };
  const swallow = (): void => {
    for (const socket of open) silent.add(socket);
  };
  context.after(async () => {
    server.close();
    for (const socket of open) socket.destroy();
    await once(server, 'close');
  });
  return { port: (server.address() as AddressInfo).port, counts, cut, swallow };
}

export interface Write {
  readonly method: 'POST' | 'PATCH';
  readonly path: string;
  readonly type: string;
  readonly body: string;
  readonly key: string;
}

export type Answered = Awaited<ReturnType<typeof sendUntilAnswered>>;

/** Sends the write until it is answered. Gives up after a minute: then it throws. */
export async function sendUntilAnswered(port: number, write: Write) {
  const givesUpAt = performance.now() + 60_000;
  for (let attempts = 1; ; attempts += 1) {
    try {
      const { status, headers, body } = await sendOnce(port, write);
      if (status < 500 && !body.includes('"request_in_progress"')) {
        const isReplayed = headers['idempotency-replayed'] === 'true';
        return { status, location: headers.location, isReplayed, attempts };
      }
    } catch (error) {
      if (performance.now() > givesUpAt) throw error;
    }
    if (performance.now() > givesUpAt) throw new Error(`No answer after ${attempts} attempts.`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(20 * attempts, 1_000)));
  }
}

async function sendOnce(port: number, { method, path, type, body, key }: Write) {
  const headers = {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Idempotency-Key': key,
  };
  const options = { port, host: '127.0.0.1', path, method, headers, agent: false, timeout: 20_000 };
  const asking = request(options);
  asking.on('timeout', () => asking.destroy(new Error('no answer')));
  asking.end(body);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const received = await text(response);
  return { status: response.statusCode ?? 0, headers: response.headers, body: received };
}
