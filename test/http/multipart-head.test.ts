/** The header blocks of parts, and bodies that are written. */

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import * as fc from 'fast-check';
import { type PartHead, parsePartHead } from '../../dist/http/multipart/headers.js';
import { createBoundary, writeMultipart } from '../../dist/http/multipart/write.js';
import { cases } from '../support/long.ts';
import { isInvalid, readParts, withHead } from '../support/multipart.ts';

function parse(block: string): PartHead {
  return parsePartHead(Buffer.from(block));
}

suite('a part', () => {
  const good: ReadonlyArray<readonly [string, string, string | undefined]> = [
    ['form-data; name="a"; filename="b.txt"', 'a', 'b.txt'],
    ['FORM-DATA;NAME=a;FileName=b.txt', 'a', 'b.txt'],
    ['form-data; name="a"; filename="b.txt";', 'a', 'b.txt'],
    ['form-data; name="a"; ; filename="b.txt" ; ', 'a', 'b.txt'],
    ['form-data; name=""', '', undefined],
    ['form-data; name="a;b=\'c"; filename=""', "a;b='c", ''],
    ['form-data; name="%22%0D%0a%25"', '"\r\n%25', undefined],
    ['form-data; name="a"; filename="q\\"q\\\\.txt"', 'a', 'q"q\\.txt'],
    ['form-data; name="a"; filename="C:\\dir\\b.txt"', 'a', 'C:\\dir\\b.txt'],
    ['form-data; name="a"; filename="b\\"', 'a', 'b\\'],
    ['form-data; name="ünï"; filename="日本語.txt"', 'ünï', '日本語.txt'],
    ["form-data; name=a; filename=x; filename*=UTF-8''%e2%82%ac%20r.txt", 'a', '€ r.txt'],
    ["form-data; name=a; filename*=iso-8859-1'en'%A3.txt", 'a', '£.txt'],
    ['form-data; name="a";\r\n filename="b.txt"', 'a', 'b.txt'],
    ['form-data; name = "a"; filename =b.txt', 'a', 'b.txt'],
    ['form-data; name=a; filename=b.txt; FILENAME="b.txt"', 'a', 'b.txt'],
    ['form-data; name=a\r\nContent-Disposition: form-data; name=a', 'a', undefined],
  ];
  test('is named by its disposition', () => {
    for (const [disposition, name, fileName] of good) {
      const found = parse(`Content-Disposition: ${disposition}`);
      assert.deepEqual([found.name, found.fileName], [name, fileName], disposition);
    }
  });

  const named = 'Content-Disposition: form-data; name=a';
  const bad: ReadonlyArray<readonly [string, string]> = [
    ['no header at all', ''],
    ['no disposition', 'Content-Type: text/plain'],
    ['another disposition', 'Content-Disposition: attachment; name="a"'],
    ['a disposition that begins like one', 'Content-Disposition: form-datax; name="a"'],
    ['no name', 'Content-Disposition: form-data; filename="a"'],
    ['two names', `${named}; name=b`],
    ['two dispositions', `${named}\r\n${named}b`],
    ['two types', `${named}\r\nContent-Type: a/b\r\nContent-Type: a/c`],
    ['an unquoted blank', `${named}; filename=my file.txt`],
    ['an open quote', 'Content-Disposition: form-data; name="a'],
    ['text after a quote', 'Content-Disposition: form-data; name="a"b'],
    ['a parameter without value', 'Content-Disposition: form-data; name'],
    ['a broken extended name', `${named}; filename*=UTF-8''%zz`],
    ['an extended name that is no UTF-8', `${named}; filename*=UTF-8''%ff`],
    ['an unknown charset', `${named}; filename*=klingon''a`],
    ['a line without colon', `${named}\r\nX`],
    ['a header name with a blank', 'Content-Disposition : form-data; name=a'],
    ['a bare line feed', 'Content-Disposition: form-data; name="a\nb"'],
    ['a zero byte', 'Content-Disposition: form-data; name="a\0b"'],
    ['a folded first line', ` ${named}`],
  ];
  test('is refused for what cannot be read, or in more than one way', async () => {
    for (const [what, head] of bad)
      await assert.rejects(readParts([withHead(head)]), isInvalid, what);
    const notUtf8 = Buffer.from(`${named}\u00e9`, 'latin1');
    assert.throws(() => parsePartHead(notUtf8), isInvalid);
  });

  test('is never refused for its type', () => {
    const lines = [
      ['Content-Type: Text/Plain; Charset="ISO-8859-1"', 'text/plain', 'ISO-8859-1'],
      ['Content-Type: weird', 'application/octet-stream', undefined],
    ] as const;
    for (const [line, contentType, charset] of lines) {
      const found = parse(`Content-Disposition: form-data; name="n"\r\n${line}`);
      assert.deepEqual(found, { name: 'n', fileName: undefined, contentType, charset }, line);
    }
  });
});

suite('a multipart body that is written', () => {
  test('is what Response.formData() reads back, name by name and byte by byte', async () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
    // A literal %22 reads as a quote: browsers escape the quote, but not the percent sign.
    const plain = name.filter((text) => !/%(?:22|0a|0d)/i.test(text) && text.isWellFormed());
    const oddName = fc.oneof(plain, fc.constantFrom('"', 'a"b', '\r\n', 'a\nb', '\\', "'"));
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 70_000 }), fc.constant(new Uint8Array(1e5)));
    const parts = fc.array(fc.tuple(oddName, oddName, bytes), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(parts, async (given) => {
        const boundary = createBoundary();
        const written = given.map(([partName, fileName, content]) => {
          const contentType = 'application/octet-stream';
          return { name: partName, fileName, contentType, content: [Buffer.from(content)] };
        });
        const body = await buffer(Readable.from(writeMultipart(boundary, written)));
        const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
        const data = await new Response(body, { headers }).formData();
        const read: unknown[] = [];
        for (const [partName, value] of data) {
          assert.ok(value instanceof File, partName);
          read.push([partName, value.name, new Uint8Array(await value.arrayBuffer())]);
        }
        assert.deepEqual(
          read,
          given.map(([partName, fileName, content]) => [
            partName,
            fileName,
            new Uint8Array(content),
          ]),
        );
      }),
      { numRuns: cases(200) },
    );
  });
});
