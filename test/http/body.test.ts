/** Bodies: whole, in their time, and for no more memory than their bytes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as fc from 'fast-check';
import { type HttpRequest, textResponse } from '../../dist/http/message.js';
import { readMultipart } from '../../dist/http/multipart/read.js';
import { gate, startHandler } from '../support/http-kit.ts';
import { cases } from '../support/long.ts';
import { get } from '../support/raw-client.ts';
import { until } from '../support/until.ts';

const limits = { uploadBytesMax: 9_999, allowedOrigins: [], publicUrl: '' };

/** Resolves when so many bytes of the connection have been read, and what they bring is kept. */
async function arrival(request: HttpRequest, bytes: number): Promise<void> {
  const { socket } = request.incoming;
  await until(`${bytes} bytes`, () => socket.bytesRead >= bytes);
  await turn();
}

/** By what a body is read with. */
const readers = {
  whole: (request: HttpRequest): unknown => request.readBody(999),
  'in parts': (request: HttpRequest): Promise<unknown> =>
    readMultipart(request, limits, () => Promise.resolve()),
};

for (const [how, read] of Object.entries(readers)) {
  test(`a client that left while a store was asked leaves nothing behind, read ${how}`, async (t) => {
    const asked = gate();
    const { client, active, logged } = await startHandler(t, async (request) => {
      asked.open();
      await new Promise((resolve) => request.incoming.once('close', resolve));
      await read(request);
      return textResponse(200, '');
    });
    const type = 'Content-Type: multipart/form-data; boundary=b';
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${type}\r\nContent-Length: 99\r\n\r\nab`);
    await asked.opened;
    client.socket.resetAndDestroy();
    await until('the end of all requests', () => active() <= 0);
    assert.deepEqual(logged, []);
  });
}

for (const [what, first, rest] of [
  ['whole', 'body', ''],
  ['in part', 'bo', 'dy'],
  ['not at all', '', 'body'],
] as const) {
  test(`a body that came ${what} before it is asked for is refused for its length`, async (t) => {
    let sent = 0;
    const { client, active } = await startHandler(t, async (request) => {
      await arrival(request, sent);
      await request.readBody(3);
      return textResponse(200, '');
    });
    const chunk = (text: string): string => (text === '' ? '' : `${text.length}\r\n${text}\r\n`);
    const start = `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(first)}`;
    sent = start.length;
    client.send(start);
    assert.equal((await client.ask(`${chunk(rest)}0\r\n\r\n`)).status, 413);
    // Its rest was read, and the connection is kept.
    client.socket.end();
    await client.ended();
    assert.equal(active(), 0);
  });
}

test('a body takes its bytes and a text of them until it is parsed, and its values from then on', async (t) => {
  const counts: number[] = [];
  const { client, pool } = await startHandler(t, async (request) => {
    const body = await request.readBody(100_000);
    counts.push(pool.bytes);
    request.reserveValues(body);
    counts.push(pool.bytes);
    request.reserveValues(body); // a change that is tried again parses it again
    counts.push(pool.bytes);
    return textResponse(200, '');
  });
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n';
  assert.equal((await client.ask(head + 'x'.repeat(100_000))).status, 200);
  assert.deepEqual([...counts, pool.bytes], [200_000, 2_400_000, 2_400_000, 0]);
});

test('a body of no bytes is read, however its length is written', async (t) => {
  const { client } = await startHandler(t, async (request) =>
    textResponse(200, `${(await request.readBody(4)).length}`),
  );
  for (const header of ['Content-Length: 00', 'Transfer-Encoding: chunked', 'X-None: 1']) {
    client.send(`POST / HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n`);
    if (header.endsWith('chunked')) client.send('0\r\n\r\n');
    assert.equal((await client.response()).body.toString(), '0', header);
  }
});

/** How a handler leaves a body alone for the time being. */
const waiters = {
  'nobody asks for': () => undefined,
  'its reader takes one chunk of': (request: HttpRequest) => void request.readChunk(),
  'comes behind another request, and nobody asks for,': () => undefined,
};

for (const [how, wait] of Object.entries(waiters)) {
  test(`a large body that ${how} is not read meanwhile`, async (t) => {
    const sent = 64 * 1024 * 1024;
    const [front, end, asked, open] = [gate(), gate(), gate(), gate()];
    let bytesRead = (): number => 0;
    const { client } = await startHandler(t, async (request) => {
      const { socket } = request.incoming;
      bytesRead = () => socket.bytesRead;
      if (request.method === 'GET') {
        front.open();
        await end.opened;
        return textResponse(200, '');
      }
      wait(request);
      asked.open();
      await open.opened;
      return textResponse(200, '');
    });
    const becomeQuiet = async (): Promise<void> => {
      let before = -1;
      for (let quiet = 0; quiet < 500; quiet = bytesRead() === before ? quiet + 1 : 0) {
        before = bytesRead();
        await turn();
      }
    };
    const isBehind = how.includes('behind');
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${sent}\r\n\r\n`;
    client.send((isBehind ? get('/') : '') + head);
    client.send(Buffer.alloc(sent));
    if (isBehind) {
      await front.opened;
      await becomeQuiet();
      end.open();
    }
    await asked.opened;
    await becomeQuiet();
    assert.ok(bytesRead() < 1024 * 1024, `${bytesRead()} bytes were read`);
    open.open();
    client.destroy();
  });
}

/** What gives back the whole body, read in its way. */
const wholeReaders: Readonly<Record<string, (request: HttpRequest) => Promise<Buffer>>> = {
  'at once': async (request) => request.readBody(1_000_000),
  'a turn late': async (request) => {
    await turn();
    return request.readBody(1_000_000);
  },
  'as a stream': (request) => readStream(request),
};

async function readStream(request: HttpRequest, onChunk?: () => void): Promise<Buffer> {
  const found: Buffer[] = [];
  for (;;) {
    const chunk = await request.readChunk();
    if (chunk.length === 0) return Buffer.concat(found);
    found.push(chunk);
    onChunk?.();
    // As a slow disk: the rest waits until the next turn.
    await turn();
  }
}

for (const [how, read] of Object.entries(wholeReaders)) {
  test(`a chunked body comes as it was sent, whatever its pieces, read ${how}`, async (t) => {
    const echo = async (request: HttpRequest) => {
      return { status: 200, headers: [], body: await read(request) };
    };
    const { client } = await startHandler(t, echo);
    client.socket.setNoDelay(true);
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 2_500 }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(pieces, async (given) => {
        client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
        for (const piece of given) {
          client.send(`${piece.length.toString(16)}\r\n`);
          client.send(Buffer.from(piece));
          client.send('\r\n');
        }
        assert.deepEqual((await client.ask('0\r\n\r\n')).body, Buffer.concat(given));
      }),
      { numRuns: cases(160) },
    );
  });
}

test('a body that pauses is handed on as far as it came', async (t) => {
  const seen = gate();
  const { client } = await startHandler(t, async (request) =>
    textResponse(200, String(await readStream(request, seen.open))),
  );
  client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1');
  await seen.opened;
  assert.equal((await client.ask('2')).body.toString(), '12');
});
