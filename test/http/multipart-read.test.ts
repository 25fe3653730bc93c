import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import { AppError } from '../../dist/errors.js';
import { readMultipart, readPart } from '../../dist/http/multipart/read.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { withCode } from '../support/errors.ts';
import { cases } from '../support/long.ts';
import {
  boundary,
  cut,
  isInvalid,
  isTooLarge,
  limits,
  multipartBody,
  part,
  readParts,
  toRequest,
  withHead,
} from '../support/multipart.ts';
import { keepOthersServed } from '../support/prober.ts';
import { startServer } from '../support/server.ts';
import { bytes as chunksOf } from '../support/uploads.ts';

keepOthersServed(startServer);

const isFull = withCode('overloaded');

suite('a multipart body', () => {
  // Content made of what delimiters are made of, so that every near miss is met.
  const content = fc
    .array(
      fc.oneof(
        fc.constantFrom('\r', '\n', '\r\n', '-', '--', `\r\n--${boundary.slice(0, 9)}`, 'x'),
        fc.uint8Array({ maxLength: 40 }),
      ),
      { maxLength: 12 },
    )
    .map((pieces) => Buffer.concat(pieces.map((piece) => Buffer.from(piece as string))))
    .filter((bytes) => !bytes.includes(`\r\n--${boundary}`));

  test('is given back byte for byte, however it is cut into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(content, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        async (contents, cuts) => {
          const body = multipartBody(contents.map((bytes, index) => part(`n${index}`, bytes)));
          const chunks = cut(
            body,
            cuts.map((place) => place % (body.length + 1)),
          );
          const found = await readParts(chunks.filter((chunk) => chunk.length > 0));
          const seen = found.map(({ name, bytes }) => [name, bytes]);
          const expected = contents.map((bytes, index) => [`n${index}`, bytes]);
          assert.deepEqual(seen, expected);
        },
      ),
      { numRuns: cases(400) },
    );
  });

  test('may have a preamble, an epilogue and no part at all', async () => {
    const body = `preamble\r\n--${boundary}\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--${boundary}-- \r\nepilogue`;
    assert.equal((await readParts([Buffer.from(body)]))[0]?.bytes.toString(), '1');
    assert.deepEqual(await readParts([Buffer.from(`--${boundary}--`)]), []);
  });

  test('may share one line end between a part without content and the next delimiter', async () => {
    const head = 'Content-Disposition: form-data; name=';
    const body = Buffer.from(
      `--${boundary}\r\n${head}a\r\n\r\n--${boundary}\r\n${head}b\r\n\r\n2\r\n--${boundary}--`,
    );
    for (const [at, chunks] of [[body], [...body].map((byte) => Buffer.from([byte]))].entries()) {
      const found = await readParts(chunks);
      const seen = found.map(({ name, bytes }) => `${name}=${bytes.toString()}`);
      assert.deepEqual(seen, ['a=', 'b=2'], `chunks ${at}`);
    }
  });

  test('is refused if a line end without CR would hide a part, however it is cut', async () => {
    const whole = multipartBody([part('a', 'one'), part('b', 'two')]).toString();
    const delimiter = `--${boundary}`;
    const bodies = [
      whole.replaceAll('\r\n', '\n'),
      whole.replace(`\r\n${delimiter}\r`, `\n${delimiter}\r`),
      whole.replace(`\r\n${delimiter}--`, `\n${delimiter}--`),
      whole.replace(`${delimiter}\r\n`, `${delimiter}\n`),
    ];
    for (const body of bodies) {
      assert.notEqual(body, whole);
      for (const chunks of [[body], body.split('')]) {
        const read = readParts(chunks.map((chunk) => Buffer.from(chunk)));
        await assert.rejects(read, /a line ends with LF alone/, body);
      }
    }
  });

  test('is refused when it is cut off anywhere before its close', async () => {
    const body = multipartBody([part('a', 'one', { fileName: 'a.txt' }), part('b', '')]);
    for (let length = 0; length < body.length - 2; length += 1)
      await assert.rejects(readParts([body.subarray(0, length)]), isInvalid, `cut at ${length}`);
    assert.equal((await readParts([body.subarray(0, -2)])).length, 2);
  });

  test('is read or refused, and settles, whatever was done to it', async () => {
    const body = multipartBody([
      part('a', 'one', { fileName: 'a.txt', type: 'text/plain' }),
      part('b', ''),
    ]);
    const piece = fc.constantFrom('\r', '\n', '\r\n', '-', `\r\n--${boundary}`, '"', ';', '\0');
    const change = fc.tuple(fc.nat(body.length), fc.nat(9), piece);
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const changed = changes.reduce(
          (bytes, [at, removed, added]) =>
            Buffer.concat([
              bytes.subarray(0, at),
              Buffer.from(added),
              bytes.subarray(at + removed),
            ]),
          body,
        );
        await readParts([changed]).catch((error: unknown) => assert.ok(isInvalid(error)));
      }),
      { numRuns: cases(400) },
    );
  });

  test('is refused for a delimiter with something behind it, and for a part after the close', async () => {
    const start = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--${boundary}`;
    for (const rest of ['x', '-\r\n', '\nContent-Disposition: form-data', ' \r\n'])
      await assert.rejects(readParts([Buffer.from(start + rest)]), isInvalid, rest);
    await assert.rejects(readParts([Buffer.from(`${start}--\r\n--${boundary}\r\n`)]), isInvalid);
  });

  test('is refused for a delimiter in a header block, also one that looks like a header', async () => {
    const named = 'Content-Disposition: form-data; name="a"';
    for (const own of [boundary, 'a:b']) {
      for (const lines of [[`--${own}`], ['X: 1', `--${own}`], [named, `--${own}`]]) {
        const head = [`--${own}`, ...lines, named].join('\r\n');
        const body = Buffer.from(`${head}\r\n\r\n1\r\n--${own}--`);
        const type = `multipart/form-data; boundary="${own}"`;
        await assert.rejects(readParts([body], { type }), isInvalid, `${own} ${lines.join()}`);
      }
    }
  });

  test('is refused for a header block over 8 KiB', async () => {
    const head = 'Content-Disposition: form-data; name="a"\r\nX: ';
    const ofBytes = (bytes: number): Buffer => withHead(head + 'h'.repeat(bytes - head.length));
    await assert.rejects(readParts([ofBytes(8_193)]), isInvalid);
    assert.equal((await readParts([ofBytes(8_192)])).length, 3);
  });
});

suite('the media type of the body', () => {
  test('must be multipart/form-data', async () => {
    for (const type of ['application/json', 'multipart/mixed; boundary=a', 'multipart', ''])
      await assert.rejects(readParts([], { type }), withCode('unsupported_media_type'), type);
  });

  test('must have a boundary that is one', async () => {
    const type = 'multipart/form-data';
    for (const bad of ['', '; boundary', '; boundary=', '; boundary=""', '; boundary="a "'])
      await assert.rejects(readParts([], { type: type + bad }), AppError, bad);
    const long = 'b'.repeat(71);
    await assert.rejects(readParts([], { type: `${type}; boundary=${long}` }), isInvalid);
    await assert.rejects(readParts([], { type: `${type}; boundary="a\u00e9"` }), isInvalid);
    const body = Buffer.from("--'()+_,./:=? b--");
    assert.deepEqual(await readParts([body], { type: `${type}; boundary="'()+_,./:=? b"` }), []);
  });
});

test('the limits let a body of exactly the limit through and nothing more', async () => {
  const body = multipartBody([part('a', Buffer.alloc(100))]);
  await readParts([body], { limits: { uploadBytesMax: body.length } });
  const small = { limits: { uploadBytesMax: body.length - 1 } };
  await assert.rejects(readParts([body], small), isTooLarge);
  const declared = toRequest(Readable.from([]), { 'content-length': '101' });
  const rules = { ...limits, uploadBytesMax: 100 };
  await assert.rejects(
    readMultipart(declared, rules, () => assert.fail('was read')),
    isTooLarge,
  );
  const ofParts = (count: number) =>
    multipartBody(Array.from({ length: count }, () => part('', '')));
  assert.equal((await readParts([ofParts(1_000)])).length, 1_000);
  await assert.rejects(readParts([ofParts(1_001)]), isTooLarge);
});

test('what parts and texts keep in memory is counted', async () => {
  const many = multipartBody(Array.from({ length: 100 }, (_, at) => part(`${at}`, '')));
  const request = toRequest(Readable.from([many], { objectMode: false }));
  await readMultipart(request, limits, () => Promise.resolve());
  assert.ok(request.reservation.bytes > 80 * 1_024, `${request.reservation.bytes}`);
  const { reservation } = request;
  await assert.rejects(
    readPart(chunksOf('x'.repeat(9e5)), 1e6, new MemoryPool(3e6).open()),
    isFull,
  );
  const before = reservation.bytes;
  await readPart(chunksOf('x'.repeat(9e5)), 1e6, reservation);
  assert.ok(reservation.bytes > before + 2e6, `${reservation.bytes}`);
});
