import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import { createBoundary, writeMultipart } from '../../dist/http/multipart/write.js';
import { cases } from '../support/long.js';

suite('a multipart body that is written', () => {
  test('is what Response.formData() reads back, name by name and byte by byte', async () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
    // A literal %22 reads as a quote: browsers escape the quote, but not the percent sign.
    const plain = name.filter((text) => !/%(?:22|0a|0d)/i.test(text) && text.isWellFormed());
    const oddName = fc.oneof(plain, fc.constantFrom('"', 'a"b', '\r\n', 'a\nb', '\\', "'"));
    const parts = fc.array(fc.tuple(oddName, oddName, fc.uint8Array({ maxLength: 70_000 })), {
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(parts, async (given) => {
        const boundary = createBoundary();
        const body = await buffer(
          Readable.from(
            writeMultipart(
              boundary,
              given.map(([partName, fileName, bytes]) => ({
                name: partName,
                fileName,
                contentType: 'application/octet-stream',
                content: [Buffer.from(bytes)],
              })),
            ),
          ),
        );
        const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
        const data = await new Response(body, { headers }).formData();
        const read: unknown[] = [];
        for (const [partName, value] of data) {
          assert.ok(value instanceof File);
          read.push([partName, value.name, new Uint8Array(await value.arrayBuffer())]);
        }
        assert.deepEqual(
          read,
          given.map(([partName, fileName, bytes]) => [partName, fileName, new Uint8Array(bytes)]),
        );
      }),
      { numRuns: cases(200) },
    );
  });

  test('joins small parts, however many there are', async () => {
    const part = { name: 'a', fileName: 'a', contentType: 'a/b', content: [Buffer.alloc(1_000)] };
    const sizes: number[] = [];
    const parts = Array.from({ length: 500 }, () => part);
    for await (const chunk of writeMultipart('b', parts)) sizes.push(chunk.length);
    assert.ok(sizes.length < 10, `${sizes.length} chunks`);
  });

  test('takes a part only when the one before it has been read', async () => {
    let taken = 0;
    function* parts(): Generator<{
      name: string;
      fileName: string;
      contentType: string;
      content: Buffer[];
    }> {
      for (;;) {
        taken += 1;
        yield { name: 'a', fileName: 'a', contentType: 'a/b', content: [Buffer.alloc(100_000)] };
      }
    }
    const body = writeMultipart('b', parts());
    for (let count = 0; count < 6; count += 1) await body.next();
    assert.ok(taken < 5, `${taken} parts were taken`);
    await body.return();
  });
});
