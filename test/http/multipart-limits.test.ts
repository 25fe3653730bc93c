import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ClientGone } from '../../dist/http/server/body.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { type PartReader, readMultipart, readPart } from '../../dist/http/multipart/read.js';
import {
  boundary,
  cut,
  isTooLarge,
  limits,
  multipartBody,
  part,
  readParts,
  readBytes,
  toRequest,
} from '../support/multipart.ts';
import { keepOthersServed } from '../support/prober.ts';
import { startServer } from '../support/server.ts';
import { bytes } from '../support/uploads.ts';
import { withCode } from '../support/errors.ts';
import { assertSoon } from '../support/pace.ts';

keepOthersServed(startServer);

const isFull = withCode('overloaded');
const sourceOf = (chunks: readonly Buffer[]): Readable =>
  Readable.from(chunks, { objectMode: false });

suite('the limits of a multipart body', () => {
  test('let a body of exactly the limit through and nothing more', async () => {
    const body = multipartBody([part('a', Buffer.alloc(100))]);
    await readParts([body], { limits: { uploadBytesMax: body.length } });
    const small = { limits: { uploadBytesMax: body.length - 1 } };
    await assert.rejects(readParts([body], small), isTooLarge);
  });

  test('refuse a declared length before anything is read', async () => {
    const source = new Readable({ read: () => assert.fail('was read') });
    const request = toRequest(source, { 'content-length': '101' });
    const reading = readMultipart(request, { ...limits, uploadBytesMax: 100 }, () =>
      Promise.resolve(),
    );
    await assert.rejects(reading, isTooLarge);
  });

  test('refuse 100,000 parts at the first one too many', async () => {
    const one = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n`;
    const body = Buffer.from(one.repeat(100_000));
    await assertSoon(1_000, async () => {
      let parts = 0;
      const source = sourceOf(cut(body, [60_000, 120_000, 180_000]));
      const reading = readMultipart(toRequest(source), limits, async (_head, content) => {
        parts += 1;
        await readBytes(content);
      });
      await assert.rejects(reading, isTooLarge);
      assert.ok(parts <= 1_000);
    });
  });

  test('hold for a part that is read whole', async () => {
    const read = (...chunks: string[]): Promise<Buffer> =>
      readPart(bytes(...chunks), 5, new MemoryPool(1e6).open());
    assert.equal((await read('f', 'ün', 'f')).toString(), 'fünf');
    assert.equal((await read()).length, 0);
    await assert.rejects(read('sechs.'), isTooLarge);
    await assert.rejects(read('sech', 's.'), isTooLarge);
  });
});

test('what parts and texts keep in memory is counted', async () => {
  const many = multipartBody(Array.from({ length: 100 }, (_, at) => part(`${at}`, '')));
  const request = toRequest(sourceOf([many]));
  await readMultipart(request, limits, () => Promise.resolve());
  assert.ok(request.reservation.bytes > 80 * 1_024, `${request.reservation.bytes}`);
  const { reservation } = request;
  await assert.rejects(readPart(bytes('x'.repeat(9e5)), 1e6, new MemoryPool(3e6).open()), isFull);
  const before = reservation.bytes;
  await readPart(bytes('x'.repeat(9e5)), 1e6, reservation);
  assert.ok(reservation.bytes > before + 2e6, `${reservation.bytes}`);
});

suite('reading a multipart body', () => {
  const big = multipartBody([part('a', Buffer.alloc(3_000_000, 1)), part('b', '2')]);

  async function read(source: Readable, onPart: PartReader): Promise<void> {
    await readMultipart(toRequest(source), limits, onPart);
  }

  test('keeps parts of several batches apart, however slowly they are read', async () => {
    const contents = [2_500_000, 0, 1, 1_048_576, 3_000_001].map((size, at) =>
      Buffer.alloc(size, at),
    );
    const body = multipartBody(contents.map((content, at) => part(`n${at}`, content)));
    const places = Array.from({ length: 130 }, (_, at) => at * 50_021);
    const found: Buffer[] = [];
    await read(sourceOf(cut(body, places)), async (_head, content) => {
      const chunks: Buffer[] = [];
      for await (const batch of content) {
        chunks.push(...batch);
        await setImmediate();
      }
      found.push(Buffer.concat(chunks));
    });
    assert.deepEqual(found, contents);
  });

  test('throws away what a reader leaves', async () => {
    const names: string[] = [];
    await read(sourceOf(cut(big, [70_000])), async ({ name }) => {
      names.push(name);
      await setImmediate();
    });
    assert.deepEqual(names, ['a', 'b']);
  });

  test('rejects with what a reader throws, once its part is over', async () => {
    for (const places of [[], [1_000], [2_000_000]]) {
      const source = sourceOf(cut(big, places));
      const failure = new Error('no more');
      await assert.rejects(
        read(source, () => Promise.reject(failure)),
        failure,
        JSON.stringify(places),
      );
    }
  });

  test('ends the part in hand, and then itself, when the client goes away', async () => {
    const source = new Readable({ read: () => undefined });
    source.push(big.subarray(0, 100_000));
    let isOver = false;
    const reading = read(source, async (_head, content) => {
      const whole = readBytes(content);
      source.destroy();
      await assert.rejects(whole, ClientGone);
      for (let iteration = 0; iteration < 20; iteration += 1) await setImmediate();
      isOver = true;
    });
    await assert.rejects(reading, ClientGone);
    assert.ok(isOver, 'the part was over first');
    assert.equal(source.listenerCount('data') + source.listenerCount('error'), 0);
  });
});
