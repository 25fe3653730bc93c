/**
 * Attacks by anonymous clients: each goes on until the thread ends that it runs in. `memoryAttacks`
 * and `turnAttacks` are made of these.
 */

import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';

export interface Target {
  readonly port: number;
  /** Ids of posts that are there. */
  readonly posts: readonly string[];
  /** Of an account, where reading needs one. */
  readonly token?: string;
}

export type Attack = (target: Target) => unknown;

export const megabyte = 1_000_000;
export const many = <T>(length: number, make: (at: number) => T): T[] =>
  Array.from({ length }, (_, at) => make(at));

/** JSON whose values take 22 times its length. */
export const objects = (bytes: number): string => `[${'{},'.repeat(bytes / 3)}{}]`;

export const form = 'multipart/form-data; boundary=b';

export function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
}

export function post(path: string, body: string, type = 'application/json'): string {
  const length = `Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}`;
  return `POST ${path} HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n${body}`;
}

/** So many connections, each made anew some time after it has ended. */
export function held(
  count: number,
  open: (target: Target, number: number) => Duplex | WebSocket,
  milliseconds = 200,
): Attack {
  return (target) => {
    const begin = (number: number): void => {
      const socket = open(target, number);
      socket.on('error', () => undefined);
      socket.on('close', () => setTimeout(begin, milliseconds, number));
    };
    for (let number = 0; number < count; number += 1) begin(number);
  };
}

/** Connections that send `bytes` and read nothing. */
export function silent(count: number, make: () => string): Attack {
  let bytes: string | undefined;
  return held(count, (target) => {
    const sent = (bytes ??= make());
    const socket = connect(target.port, '127.0.0.1').pause();
    return socket.once('connect', () => socket.write(sent));
  });
}

/** WebSockets that send these messages and read nothing. */
export function sockets(
  count: number,
  protocol: string,
  messages: (number: number, target: Target) => readonly string[],
): Attack {
  return held(count, (target, number) => {
    const socket = new WebSocket(`ws://127.0.0.1:${target.port}/graphql`, [protocol]);
    return socket.on('open', () => {
      for (const message of messages(number, target)) socket.send(message);
      socket.pause();
    });
  });
}

interface Repeated {
  readonly path: (target: Target, round: number) => string;
  readonly body?: (round: number) => string;
  readonly type?: string;
  readonly headers?: (round: number, target: Target) => Readonly<Record<string, string>>;
}

/** Requests one after the other, on `count` connections. Their answers are thrown away. */
export function repeated(method: string, request: Repeated, count = 1): Attack {
  const { path, body, type = 'application/json', headers = () => ({}) } = request;
  let round = 0;
  const repeat = async (target: Target): Promise<void> => {
    for (;;) {
      const url = `http://127.0.0.1:${target.port}${path(target, round)}`;
      const given = body && { body: body(round) };
      const all = { ...(body && { 'Content-Type': type }), ...headers(round, target) };
      round += 1;
      await fetch(url, { method, headers: all, ...given })
        .then((response) => response.arrayBuffer())
        .catch(() => delay(50));
    }
  };
  return (target) => Promise.all(many(count, () => repeat(target)));
}
