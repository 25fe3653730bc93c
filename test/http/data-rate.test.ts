/** The minimum data rate (R39): who moves keeps its connection, whatever others need. */

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { readMultipart } from '../../dist/http/multipart/read.js';
import { type HttpRequest, textResponse } from '../../dist/http/message.js';
import { Connection } from '../../dist/http/server/connection.js';
import { type Due, ProgressDeadline } from '../../dist/http/server/data-rate.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { startHandler, startHttp } from '../support/http-kit.ts';
import { boundary, limits, multipartType } from '../support/multipart.ts';
import { connectRaw, get } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

/** How many seconds a client keeps its connection that moves so many bytes in each of them. */
function endure(due: Due, bytesEach: readonly number[], held = 0): number {
  const deadline = new ProgressDeadline();
  let bytes = 0;
  for (let second = 1; second <= 1_000; second += 1) {
    bytes += bytesEach[(second - 1) % bytesEach.length] ?? 0;
    if (deadline.hasPassed(due, bytes, { held, secondsMax: 30 })) return second;
  }
  return Infinity;
}

const silent = (seconds: number): readonly number[] => Array.from({ length: seconds }, () => 0);

test('each byte that moves buys time, less where the connection holds much itself', () => {
  for (const [due, bytesEach, seconds, secondsWithMuch] of [
    ['body', [0], 6, 6],
    ['body', [200], 20, 6],
    ['body', [260], Infinity, 6],
    ['body', [0, 0, 0, 1_040], Infinity, 6],
    ['body', [2_000], Infinity, 6],
    ['body', [20_000], Infinity, Infinity],
    ['body', [0, 0, 0, 400_000], Infinity, Infinity],
    ['body', [0, 1_000_000, ...silent(60)], 32, 32],
    ['output', [0], 31, 31],
    ['output', [256], Infinity, 31],
    // As the kernel takes more of a slow client's output: seldom, and much at once.
    ['output', [8_000, ...silent(24)], Infinity, 31],
    ['output', [500_000, ...silent(24)], Infinity, Infinity],
    ['output', [20_000], Infinity, Infinity],
    ['response', [0], 31, 31],
    ['response', [1, ...silent(20)], Infinity, Infinity],
    ['nothing', [0], Infinity, Infinity],
  ] as const) {
    // A mebibyte in a minute is 17,477 bytes a second.
    const found = [endure(due, bytesEach), endure(due, bytesEach, 1_048_576)];
    assert.deepEqual(found, [seconds, secondsWithMuch], `${due} ${bytesEach.join(' ')}`);
  }
});

test('a connection is judged by what it holds itself', () => {
  for (const [held, bytesEach, isEnded] of [
    [1_048_576, 17_000, true],
    [1_048_576, 18_000, false],
    [0, 17_000, false],
  ] as const) {
    let isDestroyed = false;
    const socket = {
      isPaused: () => false,
      writableLength: 1,
      bytesWritten: 1,
      destroy: () => void (isDestroyed = true),
    };
    const connection = new Connection(socket as unknown as Socket, new MemoryPool(1e9));
    connection.memory.open().set(held);
    for (let second = 0; second < 2_000; second += 1) {
      socket.bytesWritten += bytesEach;
      connection.sweep(30);
    }
    assert.equal(isDestroyed, isEnded, `${bytesEach} bytes a second of ${held}`);
  }
});

const env = { IDLE_TIMEOUT_SECONDS: '1' };
const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${multipartType}\r\nContent-Length: `;

/** Answers with the number of bytes of what it reads. */
const readers = {
  'read whole': async (request: HttpRequest) => {
    const body = await request.readBody(1e7);
    return textResponse(200, `${body.length}`);
  },
  'read in parts': async (request: HttpRequest) => {
    let length = 0;
    await readMultipart(request, limits, async (_head, content) => {
      for await (const batch of content) {
        for (const chunk of batch) length += chunk.length;
      }
    });
    return textResponse(200, `${length}`);
  },
};

describe('a client that is too slow', { concurrency: true }, () => {
  for (const [how, reader] of Object.entries(readers)) {
    test(`with a body that is ${how} gets 408, and its memory is free`, async (t) => {
      const { client, pool } = await startHandler(t, reader, { env });
      client.send(`${head}900000\r\n\r\n--${boundary}\r\nContent-Disposition: form-data; name="a"`);
      const { status, headers } = await client.ask(`\r\n\r\n${'x'.repeat(200_000)}`);
      assert.deepEqual([status, headers.get('connection')], [408, 'close']);
      await client.ended();
      await until('an empty pool', () => pool.bytes === 0);
    });
  }

  test('with a body that nobody reads loses its connection', async (t) => {
    const client = await connectRaw(t, startHttp(t, { env, routes: {} }));
    assert.equal((await client.ask(`${head}1000\r\n\r\n`)).status, 404);
    await client.ended();
  });

  test('with its response loses its connection, and the memory is free', async (t) => {
    const large = textResponse(200, 'x'.repeat(30_000_000));
    const { client, pool } = await startHandler(t, () => large, { env });
    client.socket.pause();
    client.send(get('/'));
    await until('memory of the pool in use', () => pool.bytes > 0);
    await until('an empty pool', () => pool.bytes === 0);
  });
});

test('an upload goes on while others hold all memory, as fast as its client sends', async (t) => {
  const { client, pool } = await startHandler(t, readers['read in parts'], { env });
  pool.open().set(pool.bytesMax);
  const start = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n`;
  const end = `\r\n--${boundary}--\r\n`;
  const piece = Buffer.alloc(100_000, 'x');
  client.send(`${head}${start.length + 30 * piece.length + end.length}\r\n\r\n${start}`);
  for (let count = 0; count < 30; count += 1) {
    client.send(piece);
    await wait(100);
  }
  const { status, body } = await client.ask(end);
  assert.deepEqual([status, body.toString()], [200, `${30 * piece.length}`]);
});
