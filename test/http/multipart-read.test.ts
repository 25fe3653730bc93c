import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { AppError } from '../../dist/errors.js';
import { ClientGone } from '../../dist/http/body.js';
import type { HttpRequest } from '../../dist/http/message.js';
import {
  type PartHead,
  type PartReader,
  readMultipart,
  readPartText,
} from '../../dist/http/multipart-read.js';
import { boundary, multipartBody, multipartType, part } from '../support/multipart.js';

const limits = { uploadBytesMax: 1 << 26, fileBytesMax: 1 << 26, uploadPartsMax: 1_000 };

interface ReadPart extends PartHead {
  readonly bytes: Buffer;
}

function toRequest(source: Readable, headers: Record<string, string> = {}): HttpRequest {
  const all = new Map(Object.entries({ 'content-type': multipartType, ...headers }));
  return {
    id: 'test',
    method: 'POST',
    path: '/',
    query: '',
    params: {},
    remoteAddress: '',
    host: '',
    header: (name) => all.get(name),
    readBody: () => Promise.reject(new Error('not used')),
    streamBody: () => source,
  };
}

async function readBytes(content: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of content as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function readAll(
  chunks: readonly Buffer[],
  options: { readonly limits?: Partial<typeof limits>; readonly type?: string } = {},
): Promise<ReadPart[]> {
  const source = Readable.from(chunks, { objectMode: false });
  const headers = options.type === undefined ? {} : { 'content-type': options.type };
  const found: ReadPart[] = [];
  try {
    const request = toRequest(source, headers);
    await readMultipart(request, { ...limits, ...options.limits }, async (head, content) => {
      found.push({ ...head, bytes: await readBytes(content) });
    });
  } finally {
    for (const event of ['data', 'error', 'close']) assert.equal(source.listenerCount(event), 0);
  }
  return found;
}

function withCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof AppError && error.code === code;
}

const isInvalid = withCode('invalid_multipart');
const isTooLarge = withCode('content_too_large');

/** One part with this header block, between two good ones. */
function withHead(head: string): Buffer {
  return multipartBody([part('a', '1'), { head, content: 'x' }, part('b', '2')]);
}

/** Cuts `body` at these places. */
function cut(body: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.toSorted((a, b) => a - b), body.length];
  return sorted.slice(1).map((end, index) => body.subarray(sorted[index], end));
}

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
          const found = await readAll(chunks.filter((chunk) => chunk.length > 0));
          assert.deepEqual(
            found.map(({ bytes }) => bytes),
            contents,
          );
          assert.deepEqual(
            found.map(({ name }) => name),
            contents.map((_bytes, index) => `n${index}`),
          );
        },
      ),
      { numRuns: 400 },
    );
  });

  test('is read the same when it comes byte by byte', async () => {
    const body = multipartBody([
      part('one', 'a\r\n--b\r\r\n', { fileName: 'a.txt', type: 'text/plain; charset=x' }),
      part('two', ''),
    ]);
    const found = await readAll([...body].map((byte) => Buffer.from([byte])));
    assert.deepEqual(
      found.map(({ name, bytes }) => [name, bytes.toString()]),
      [
        ['one', 'a\r\n--b\r\r\n'],
        ['two', ''],
      ],
    );
  });

  test('may have a preamble, an epilogue, blanks after delimiters and no part at all', async () => {
    const body = `preamble\r\n--${boundary} \t\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--${boundary}-- \r\nepilogue`;
    assert.equal((await readAll([Buffer.from(body)]))[0]?.bytes.toString(), '1');
    assert.deepEqual(await readAll([Buffer.from(`--${boundary}--`)]), []);
  });

  test('may share one line end between a part without content and the next delimiter', async () => {
    const head = 'Content-Disposition: form-data; name=';
    const body = Buffer.from(
      `--${boundary}\r\n${head}a\r\n\r\n--${boundary}\r\n${head}b\r\n\r\n2\r\n--${boundary}--`,
    );
    for (const chunks of [[body], [...body].map((byte) => Buffer.from([byte]))]) {
      const found = await readAll(chunks);
      assert.deepEqual(
        found.map(({ name, bytes }) => `${name}=${bytes.toString()}`),
        ['a=', 'b=2'],
      );
    }
  });

  test('is refused when it is cut off anywhere before its close', async () => {
    const body = multipartBody([part('a', 'one', { fileName: 'a.txt' }), part('b', '')]);
    for (let length = 0; length < body.length - 2; length += 1) {
      await assert.rejects(readAll([body.subarray(0, length)]), isInvalid, `cut at ${length}`);
    }
    assert.equal((await readAll([body.subarray(0, -2)])).length, 2);
  });

  const broken: ReadonlyArray<readonly [string, string]> = [
    ['a line that begins with the delimiter', `1\r\n--${boundary}x`],
    ['a delimiter with one dash after it', `1\r\n--${boundary}-\r\n`],
    ['a delimiter with a line feed only', `1\r\n--${boundary}\nContent-Disposition: form-data`],
    ['text after the close on its line', `1\r\n--${boundary}--x\r\n`],
    ['a part after the close', `1\r\n--${boundary}--\r\n--${boundary}\r\n`],
    ['an endless epilogue', `1\r\n--${boundary}--\r\n${'e'.repeat(9_000)}`],
    ['endless blanks after a delimiter', `1\r\n--${boundary}${' '.repeat(9_000)}\r\n`],
  ];
  for (const [what, rest] of broken) {
    test(`is refused for ${what}`, async () => {
      const start = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n`;
      await assert.rejects(readAll([Buffer.from(start + rest)]), isInvalid);
    });
  }

  test('is refused for an endless preamble or header block', async () => {
    await assert.rejects(readAll([Buffer.alloc(9_000, 'p')]), isInvalid);
    await assert.rejects(readAll([withHead(`X: ${'h'.repeat(8_200)}`)]), isInvalid);
    const long = `Content-Disposition: form-data; name="a"\r\nX: ${'h'.repeat(8_000)}`;
    assert.equal((await readAll([withHead(long)])).length, 3);
  });
});

suite('the media type of the body', () => {
  test('must be multipart/form-data', async () => {
    for (const type of ['application/json', 'multipart/mixed; boundary=a', 'multipart', '']) {
      await assert.rejects(readAll([], { type }), withCode('unsupported_media_type'), type);
    }
  });

  test('must have a boundary that is one', async () => {
    const type = 'multipart/form-data';
    for (const bad of ['', '; boundary', '; boundary=', '; boundary=""', '; boundary="a "']) {
      await assert.rejects(readAll([], { type: type + bad }), AppError, bad);
    }
    const long = 'b'.repeat(71);
    await assert.rejects(readAll([], { type: `${type}; boundary=${long}` }), isInvalid);
    await assert.rejects(readAll([], { type: `${type}; boundary="a\u00e9"` }), isInvalid);
    const body = Buffer.from("--'()+_,./:=? b--");
    assert.deepEqual(await readAll([body], { type: `${type}; boundary="'()+_,./:=? b"` }), []);
  });
});

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
  ];
  for (const [disposition, name, fileName] of good) {
    test(`is named by ${JSON.stringify(disposition)}`, async () => {
      const found = await readAll([withHead(`Content-Disposition: ${disposition}`)]);
      assert.deepEqual(
        found.map((item) => [item.name, item.fileName]),
        [
          ['a', undefined],
          [name, fileName],
          ['b', undefined],
        ],
      );
    });
  }

  const bad: ReadonlyArray<readonly [string, string]> = [
    ['no header at all', ''],
    ['no disposition', 'Content-Type: text/plain'],
    ['another disposition', 'Content-Disposition: attachment; name="a"'],
    ['a disposition that begins like one', 'Content-Disposition: form-datax; name="a"'],
    ['no name', 'Content-Disposition: form-data; filename="a"'],
    ['two names', 'Content-Disposition: form-data; name=a; name=b'],
    [
      'two dispositions',
      'Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b',
    ],
    [
      'two types',
      'Content-Disposition: form-data; name=a\r\nContent-Type: a/b\r\nContent-Type: a/c',
    ],
    ['an unquoted blank', 'Content-Disposition: form-data; name=a; filename=my file.txt'],
    ['an open quote', 'Content-Disposition: form-data; name="a'],
    ['text after a quote', 'Content-Disposition: form-data; name="a"b'],
    ['a parameter without value', 'Content-Disposition: form-data; name'],
    ['a broken extended name', "Content-Disposition: form-data; name=a; filename*=UTF-8''%zz"],
    [
      'an extended name that is no UTF-8',
      "Content-Disposition: form-data; name=a; filename*=UTF-8''%ff",
    ],
    ['an unknown charset', "Content-Disposition: form-data; name=a; filename*=klingon''a"],
    ['a line without colon', 'Content-Disposition: form-data; name=a\r\nX'],
    ['a header name with a blank', 'Content-Disposition : form-data; name=a'],
    ['a bare line feed', 'Content-Disposition: form-data; name="a\nb"'],
    ['a zero byte', 'Content-Disposition: form-data; name="a\0b"'],
    ['a folded first line', ' Content-Disposition: form-data; name=a'],
  ];
  for (const [what, head] of bad) {
    test(`is refused for ${what}`, async () => {
      await assert.rejects(readAll([withHead(head)]), isInvalid);
    });
  }

  test('is refused for a header that is not UTF-8', async () => {
    const body = withHead('Content-Disposition: form-data; name="\u00e9"').toString('utf8');
    await assert.rejects(readAll([Buffer.from(body, 'latin1')]), isInvalid);
  });

  test('is never refused for its type or its transfer encoding', async () => {
    const lines = [
      ['Content-Type: Text/Plain; Charset="ISO-8859-1"', 'text/plain', 'ISO-8859-1'],
      ['Content-Type: weird', 'application/octet-stream', undefined],
      ['Content-Transfer-Encoding: base64', 'text/plain', undefined],
    ] as const;
    for (const [line, type, charset] of lines) {
      const head = `Content-Disposition: form-data; name="n"\r\n${line}`;
      const [found] = await readAll([multipartBody([{ head, content: 'eA==' }])]);
      assert.equal(found?.bytes.toString(), 'eA==');
      assert.equal(found.contentType, type);
      assert.equal(found.charset, charset);
    }
  });
});

suite('the limits of a multipart body', () => {
  test('let a part of exactly the limit through and nothing more', async () => {
    for (const [size, fits] of [
      [99, true],
      [100, true],
      [101, false],
    ] as const) {
      const reading = readAll([multipartBody([part('a', Buffer.alloc(size))])], {
        limits: { fileBytesMax: 100 },
      });
      if (fits) assert.equal((await reading)[0]?.bytes.length, size);
      else await assert.rejects(reading, isTooLarge);
    }
  });

  test('let a body of exactly the limit through and nothing more', async () => {
    const body = multipartBody([part('a', Buffer.alloc(100))]);
    await readAll([body], { limits: { uploadBytesMax: body.length } });
    const small = { limits: { uploadBytesMax: body.length - 1 } };
    await assert.rejects(readAll([body], small), isTooLarge);
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
    const started = performance.now();
    let parts = 0;
    const source = Readable.from(cut(body, [60_000, 120_000, 180_000]), { objectMode: false });
    const reading = readMultipart(toRequest(source), limits, async (_head, content) => {
      parts += 1;
      await readBytes(content);
    });
    await assert.rejects(reading, isTooLarge);
    assert.ok(parts <= 1_000);
    assert.ok(performance.now() - started < 1_000);
  });

  test('hold for the text of a part, which must be UTF-8', async () => {
    const read = (bytes: Buffer): Promise<string> => readPartText(Readable.from([bytes]), 5);
    assert.equal(await read(Buffer.from('fünf')), 'fünf');
    await assert.rejects(read(Buffer.from('sechs.')), isTooLarge);
    await assert.rejects(read(Buffer.from([0xff])), isInvalid);
  });
});

suite('reading a multipart body', () => {
  const big = multipartBody([part('a', Buffer.alloc(3_000_000, 1)), part('b', '2')]);

  async function read(source: Readable, onPart: PartReader): Promise<void> {
    await readMultipart(toRequest(source), limits, onPart);
  }

  test('hands out one part after the other', async () => {
    const body = multipartBody(['a', 'b', 'c'].map((name) => part(name, name)));
    const events: string[] = [];
    await read(Readable.from([body], { objectMode: false }), async ({ name }, content) => {
      events.push(`begin ${name}`);
      await setImmediate();
      events.push((await readBytes(content)).toString());
    });
    assert.deepEqual(events, ['begin a', 'a', 'begin b', 'b', 'begin c', 'c']);
  });

  test('throws away what a reader leaves', async () => {
    const names: string[] = [];
    await read(Readable.from(cut(big, [70_000]), { objectMode: false }), async ({ name }) => {
      names.push(name);
      await setImmediate();
    });
    assert.deepEqual(names, ['a', 'b']);
  });

  test('pauses the request while a reader is slow', async () => {
    let given = 0;
    const source = new Readable({
      read() {
        given += 65_536;
        this.push(given > 65_536 ? Buffer.alloc(65_536, 1) : big.subarray(0, 65_536));
      },
    });
    const failure = new Error('enough');
    await assert.rejects(
      read(source, async () => {
        for (let turn = 0; turn < 200; turn += 1) await setImmediate();
        throw failure;
      }),
      failure,
    );
    assert.ok(given < 600_000, `${given} bytes were taken`);
    source.destroy();
  });

  test('rejects with what a reader throws, once its part is over', async () => {
    for (const places of [[], [1_000], [2_000_000]]) {
      const source = Readable.from(cut(big, places), { objectMode: false });
      const failure = new Error('no more');
      await assert.rejects(
        read(source, () => Promise.reject(failure)),
        failure,
      );
    }
  });

  test('ends the part in hand, and then itself, when the client goes away', async () => {
    const source = new Readable({ read: () => undefined });
    source.push(big.subarray(0, 100_000));
    let ended = '';
    const reading = read(source, async (_head, content) => {
      content.once('data', () => source.destroy());
      await readBytes(content).catch((error: unknown) => {
        ended = error instanceof ClientGone ? 'gone' : 'other';
        throw error;
      });
    });
    await assert.rejects(reading, ClientGone);
    assert.equal(ended, 'gone');
    assert.equal(source.listenerCount('data') + source.listenerCount('error'), 0);
  });

  test('waits for the part in hand before it rejects', async () => {
    const source = new Readable({ read: () => undefined });
    source.push(big.subarray(0, 100_000));
    let over = false;
    const reading = read(source, async (_head, content) => {
      source.destroy(new Error('reset'));
      await readBytes(content).catch(() => undefined);
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
      over = true;
    });
    await assert.rejects(reading, ClientGone);
    assert.ok(over);
  });
});
