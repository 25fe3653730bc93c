/** WebSocket clients for tests: the real one of the newer protocol, and one that speaks by hand. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Client, type ClientOptions, createClient } from 'graphql-ws';
import { WebSocket } from 'ws';

/** A message of the server; `payload` is whatever came. */
export interface Message {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

export interface ModernClient {
  readonly client: Client;
  /** Runs to the end; rejects with what the `error` message held. */
  readonly run: (query: string, variables?: Record<string, unknown>) => Promise<unknown[]>;
}

/** `graphql-ws`'s own client. Never connects again by itself. */
export function modernClient(port: number, options: Partial<ClientOptions> = {}): ModernClient {
  const client = createClient({
    url: `ws://127.0.0.1:${port}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    ...options,
  });
  return {
    client,
    async run(query, variables = {}) {
      const results: unknown[] = [];
      for await (const result of client.iterate({ query, variables })) results.push(result);
      return results;
    },
  };
}

export interface HandClient {
  readonly socket: WebSocket;
  /** What came so far and was not asked for with `next`. */
  readonly received: Message[];
  send(message: unknown): void;
  sendText(text: string): void;
  sendBinary(bytes: string | Buffer): void;
  /** The next message. Rejects where the socket closes instead. */
  next(): Promise<Message>;
  /** Code and reason, once it is closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  close(): Promise<void>;
}

export interface HandOptions {
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
  readonly autoPong?: boolean;
}

/** A client that sends what it is told; resolves once it is connected. */
export async function connectByHand(port: number, options: HandOptions = {}): Promise<HandClient> {
  const { protocols = [], headers = {}, path = '/graphql', autoPong = true } = options;
  const url = `ws://127.0.0.1:${port}${path}`;
  const socket = new WebSocket(url, [...protocols], { headers, autoPong });
  const received: Message[] = [];
  const waiting: ((message: Message) => void)[] = [];
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message;
    const wake = waiting.shift();
    if (wake === undefined) received.push(message);
    else wake(message);
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await once(socket, 'open');
  return {
    socket,
    received,
    closed,
    send: (message) => socket.send(JSON.stringify(message)),
    sendText: (text) => socket.send(text),
    sendBinary: (bytes) => socket.send(Buffer.from(bytes as string), { binary: true }),
    next() {
      const message = received.shift();
      if (message !== undefined) return Promise.resolve(message);
      const next = new Promise<Message>((resolve) => waiting.push(resolve));
      const early = closed.then(({ code, reason }) => {
        throw new Error(`closed with ${code} ${reason}`);
      });
      return Promise.race([next, early]);
    },
    async close() {
      socket.close();
      await closed;
    },
  };
}

/** Connected, initialised and acknowledged. */
export async function connectReady(port: number, options: HandOptions = {}): Promise<HandClient> {
  const client = await connectByHand(port, options);
  client.send({ type: 'connection_init' });
  const ack = await client.next();
  if (ack.type !== 'connection_ack') throw new Error(`no ack but ${JSON.stringify(ack)}`);
  return client;
}

/** The head and body of the HTTP answer to an upgrade request with these header lines. */
export async function askUpgrade(
  port: number,
  lines: readonly string[],
): Promise<{ readonly status: number; readonly text: string }> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const text = await readAll(socket);
  return { status: Number(text.slice(9, 12)), text };
}

/** Reads until the other side ends, or until a socket is open (101). */
async function readAll(socket: Socket): Promise<string> {
  let text = '';
  for await (const chunk of socket) {
    text += String(chunk);
    if (text.startsWith('HTTP/1.1 101')) break;
  }
  socket.destroy();
  return text;
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
