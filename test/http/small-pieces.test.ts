/** Bodies in pieces of a few bytes: whole, in time, and for no more memory than their bytes. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import * as fc from 'fast-check';
import type { HttpResponse, HttpRequest } from '../../dist/http/message.js';
import { gate, startHttp } from '../support/http-kit.js';
import { runProgram } from '../support/program.js';
import { connectRaw } from '../support/raw-client.js';
import { cases, isLong } from '../support/long.js';

const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 2_500 }), { maxLength: 40 });

describe('a chunked body', () => {
  const ends: (() => Promise<void>)[] = [];
  let seen = gate();
  let port = 0;
  const readStream = async (request: HttpRequest): Promise<Buffer> => {
    const found: Buffer[] = [];
    for (;;) {
      const chunk = await request.readChunk();
      if (chunk.length === 0) return Buffer.concat(found);
      found.push(chunk);
      seen.open();
      // As a slow disk: the rest waits until the next turn.
      await turn();
    }
  };
  before(async () => {
    const echo = (body: Buffer): HttpResponse => ({ status: 200, headers: [], body });
    const server = await startHttp(
      { after: (end: unknown) => ends.push(end as () => Promise<void>) },
      {
        routes: {
          'POST /whole': async (request) => echo(await request.readBody(1_000_000)),
          'POST /stream': async (request) => echo(await readStream(request)),
          'POST /late': async (request) => {
            await turn();
            return echo(await request.readBody(1_000_000));
          },
        },
      },
    );
    port = server.port;
  });
  after(async () => {
    for (const end of ends) await end();
  });

  for (const path of ['/whole', '/stream', '/late']) {
    test(`comes as it was sent, whatever its pieces, to ${path}`, async (t) => {
      const client = await connectRaw(t, port);
      client.socket.setNoDelay(true);
      await fc.assert(
        fc.asyncProperty(pieces, async (given) => {
          client.send(`POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
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

  test('that pauses is handed on as far as it came', async (t) => {
    seen = gate();
    const client = await connectRaw(t, port);
    client.send('POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1');
    await seen.opened;
    assert.equal((await client.ask('2')).body.toString(), '12');
  });
});

const chunks = isLong ? 1_000_000 : 100_000;
const connections = isLong ? 3 : 1;
const growthMax = 100 * 1024 * 1024;
const form = '--b\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n';

for (const { path, type, first, last, status } of [
  { path: '/posts', type: 'application/json', first: '', last: '', status: 400 },
  {
    path: '/api/multiparts/list',
    type: 'multipart/form-data; boundary=b',
    first: form,
    last: '\r\n--b--',
    status: 200,
  },
]) {
  test(`${chunks} chunks of a byte for ${path} take no more memory than a file`, async (t) => {
    const program = await runProgram(t, { measured: true });
    const server = await program.listening();
    const start = await program.measure();
    const chunk = (text: string): string =>
      text === '' ? '' : `${text.length.toString(16)}\r\n${text}\r\n`;
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n`;
    const bytes = chunk(' ').repeat(10_000);
    const send = async (): Promise<string> => {
      const socket = connect(server.port, '127.0.0.1');
      const received = once(socket, 'data') as Promise<[Buffer]>;
      socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk(first)}`);
      for (let sent = 0; sent < chunks; sent += 10_000) {
        if (!socket.write(bytes)) await once(socket, 'drain');
      }
      socket.write(`${chunk(last)}0\r\n\r\n`);
      const [response] = await received;
      socket.destroy();
      return response.toString('latin1', 9, 12);
    };
    const statuses = await Promise.all(Array.from({ length: connections }, send));
    assert.deepEqual(new Set(statuses), new Set([String(status)]));
    const { residentMax } = await program.measure();
    t.diagnostic(`at most ${(residentMax - start.resident) >> 20} MiB more`);
    assert.ok(residentMax - start.resident < growthMax, `${residentMax - start.resident} bytes`);
  });
}
