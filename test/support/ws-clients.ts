/** WebSocket clients for tests: the real one of the newer protocol, and one that speaks by hand. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type ClientOptions, createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { type Served, waitSeconds } from './raw-client.ts';
import { within } from './until.ts';

/** A message of the server; `payload` is whatever came. */
export interface Message {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

/** The message of the newer protocol that begins an operation. */
export const subscribe = (id: string, query: string, more: object = {}): object => {
  return { id, type: 'subscribe', payload: { query, ...more } };
};

/**
 * `graphql-ws`'s own client. Never connects again by itself. `run` runs an operation to its end; it
 * rejects with what the `error` message held.
 */
export function modernClient(port: number, options: Partial<ClientOptions> = {}) {
  const client = createClient({
    url: `ws://127.0.0.1:${port}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    ...options,
  });
  return {
    client,
    async run(query: string, variables: Record<string, unknown> = {}): Promise<unknown[]> {
      const results: unknown[] = [];
      for await (const result of client.iterate({ query, variables })) results.push(result);
      return results;
    },
  };
}

export type HandClient = Awaited<ReturnType<typeof connectByHand>>;

export interface HandOptions {
  /** The newer one where left out; none where empty. */
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly autoPong?: boolean;
  /** Whether `ka` messages are handed out too. */
  readonly keepAlives?: boolean;
}

/** A client that sends what it is told; resolves once it is connected. Its server may end it. */
export async function connectByHand(to: Served, options: HandOptions = {}) {
  const port = typeof to === 'number' ? to : (await to).port;
  const { protocols = ['graphql-transport-ws'], headers = {}, autoPong = true } = options;
  const url = `ws://127.0.0.1:${port}/graphql`;
  const socket = new WebSocket(url, [...protocols], { headers, autoPong });
  const received: Message[] = [];
  const waiting: ((message: Message) => void)[] = [];
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message;
    if (message.type === 'ka' && options.keepAlives !== true) return;
    const wake = waiting.shift();
    if (wake === undefined) received.push(message);
    else wake(message);
  });
  const closing = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await once(socket, 'open');
  const send = (message: unknown): void => socket.send(JSON.stringify(message));
  /** Rejects where the socket closes instead. */
  const next = (): Promise<Message> => {
    const message = received.shift();
    if (message !== undefined) return Promise.resolve(message);
    const later = new Promise<Message>((resolve) => waiting.push(resolve));
    const early = closing.then(({ code, reason }) => {
      throw new Error(`closed with ${code} ${reason}`);
    });
    return within(Promise.race([later, early]), 'a message of the socket', waitSeconds);
  };
  /** Sends it, and gives the next message. */
  const ask = (message: unknown): Promise<Message> => {
    send(message);
    return next();
  };
  return {
    socket,
    /** What came so far and was not asked for with `next`. */
    received,
    /** Code and reason, once it is closed. */
    get closed() {
      return within(closing, 'the end of the socket', waitSeconds);
    },
    send,
    next,
    ask,
    sendText: (text: string) => socket.send(text),
    sendBinary: (bytes: string | Buffer) => {
      socket.send(Buffer.from(bytes as string), { binary: true });
    },
    /** Resolves once what was sent before has been dealt with, and nothing came of it. */
    async settle(): Promise<void> {
      const payload = { settled: true };
      assert.deepEqual(await ask({ type: 'ping', payload }), { type: 'pong', payload });
    },
    async close(): Promise<void> {
      socket.close();
      await within(closing, 'the end of the socket', waitSeconds);
    },
  };
}

/** Connected, initialised and acknowledged. */
export async function connectReady(to: Served, options: HandOptions = {}): Promise<HandClient> {
  const client = await connectByHand(to, options);
  assert.deepEqual(await client.ask({ type: 'connection_init' }), { type: 'connection_ack' });
  return client;
}

/** The head and body of the HTTP answer to an upgrade request with these header lines. */
export async function askUpgrade(
  port: number,
  lines: readonly string[],
): Promise<{ readonly status: number; readonly text: string }> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  let text = '';
  // Until the other side ends, or a socket is open.
  for await (const chunk of socket) {
    text += String(chunk);
    if (text.startsWith('HTTP/1.1 101')) break;
  }
  socket.destroy();
  return { status: Number(text.slice(9, 12)), text };
}

/** Header lines of a good upgrade request; `changes` replaces or (undefined) drops some. */
export function upgradeLines(
  changes: Readonly<Record<string, string | undefined>> = {},
  target = '/graphql',
): string[] {
  const headers: Record<string, string | undefined> = {
    Host: 'blog.example',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...changes,
  };
  const lines = Object.entries(headers).filter(([, value]) => value !== undefined);
  return [`GET ${target} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`)];
}
