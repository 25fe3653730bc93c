/** File names as client libraries write them, and parts that would be lost (R18). */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { filesOnDisk, postForm, refusal, stored } from '../support/files.ts';
import { postParts } from '../support/graphql-http.ts';
import { pluck } from '../support/lists.ts';
import { multipartBody, part, type SentPart } from '../support/multipart.ts';
import { startServer } from '../support/server.ts';

const longName = `${'\u6587'.repeat(84)}.x`;
const base64 = (text: string): string => `=?utf-8?B?${Buffer.from(text).toString('base64')}?=`;
const percent = (text: string): string => `UTF-8''${encodeURIComponent(text)}`;
const shiftJis = '=?Shift_JIS?B?k/qWew==?=.txt';
const twice = `"${base64('a/\u00fc?.txt')}"; filename*=utf-8''b.txt`;

const partOf = (parameters: string): SentPart => ({
  head: `Content-Disposition: form-data${parameters}`,
  content: 'x',
});

suite('a file name', () => {
  test('is understood as each client writes it', async (t) => {
    const server = await startServer(t);
    // [who writes it, the parameters after `form-data`, the name it is stored under]
    for (const [who, parameters, expected] of [
      ['.NET, twice', `; name=f; filename=${twice}`, 'b.txt'],
      ['.NET, long', `; name=f; filename="?"; filename*=${percent(longName)}`, longName],
      ['.NET, long, in base64', `; name=f; filename="${base64(longName)}"`, longName],
      ['.NET, not quoted', `; name=f; filename=${base64('\u00e4.txt')}`, '\u00e4.txt'],
      ['with a slash', '; name="f"; filename="=?utf-8?B?w7/Dvz8/LnR4dA==?="', '\u00ff\u00ff??.txt'],
      ['Spring', '; name="f"; filename="=?UTF-8?Q?=C3=A4_b=3D%41.txt?="', '\u00e4 b=%41.txt'],
      [
        'JavaMail',
        `; name=f; filename="${base64('\u00e4')}\r\n ${base64('b.txt')}"`,
        '\u00e4b.txt',
      ],
      ['beside text', '; name=f; filename="a =?iso-8859-1*en?q?=A3?= c.txt"', 'a \u00a3 c.txt'],
      ['another charset', `; name=f; filename="${shiftJis}"`, '\u65e5\u672c.txt'],
      ['requests', "; name*=utf-8''%C3%A4; filename*=utf-8''%C3%A4.txt", '\u00e4.txt'],
      ['HttpMime', `; name=f; filename="?.txt"; filename*=UTF-8''%C3%A4.txt`, '\u00e4.txt'],
      ['JavaScript', "; name=f; filename*=UTF-8''it's%20%C3%A4%20(1)*.txt", "it's \u00e4 (1)*.txt"],
      ['Latin-1, extended', "; name=f; filename*=ISO-8859-1'en'%E4.txt", '\u00e4.txt'],
      ['browsers, Dart', '; name="f"; filename="%22q%22 100%25.txt"', '"q" 100%25.txt'],
      ['Go, PHP, curl', '; name="f"; filename="\\"q\\" \\\\ b.txt"', ' b.txt'],
      ['Netty, PHP, raw UTF-8', '; name="f"; filename="\u00e4;=.txt"', '\u00e4;=.txt'],
      ['macOS, decomposed', '; name="f"; filename="a\u0308.txt"', '\u00e4.txt'],
      ['a path, encoded', `; name="f"; filename="${base64('C:\\\u00e4\\b.txt')}"`, 'b.txt'],
      ['old clients', '; name="f"; filename="b.txt";', 'b.txt'],
    ] as const) {
      const response = await postForm(server, 'list', multipartBody([partOf(parameters)]));
      assert.equal(response.status, 200, who);
      assert.deepEqual(pluck(await stored(server), 1), [expected], who);
      const path = `files/${encodeURIComponent(expected.normalize('NFD'))}`;
      assert.equal((await server.fetch(`/${path}`)).status, 200, `${who}, in another form`);
      await server.fetch(`/api/multiparts/${path.slice(6)}`, { method: 'DELETE' });
    }
  });

  test('that cannot be decoded, or has two meanings, is refused', async (t) => {
    const server = await startServer(t);
    for (const parameters of [
      '; name=f; filename="=?klingon?B?YQ==?="',
      '; name=f; filename="=?utf-8?B?/w==?="',
      "; name=f; filename*=UTF-8''%ff",
      "; name=f; name*=klingon''a",
      '; name=f; filename*0=a; filename*1=b',
      `; name=f; filename="${base64('a\0b')}"`,
      `; name=f; filename="${base64(`xx${longName}`)}"`,
    ]) {
      const response = await postForm(server, 'list', multipartBody([partOf(parameters)]));
      assert.deepEqual(await refusal(response), [400, 'invalid_multipart'], parameters);
    }
    assert.deepEqual(await filesOnDisk(server), []);
  });
});

suite('a part is never lost behind a 200', () => {
  const file = (name: string, fileName: string) => part(name, fileName, { fileName });
  const inner = `--in\r\nContent-Disposition: attachment; filename="a"\r\n\r\n1\r\n--in--`;
  const mixed = { type: 'multipart/mixed; boundary=in' };
  // As Netty (Vert.x WebClient) sends two files of one name.
  const ofNetty = ['a', 'b'].map(
    (name) =>
      `--7a1f\r\ncontent-disposition: attachment; filename="${name}.txt"\r\ncontent-length: 1\r\n` +
      `content-type: text/plain\r\ncontent-transfer-encoding: binary\r\n\r\n${name}\r\n`,
  );
  const netty = {
    head: 'content-disposition: form-data; name="f"\r\ncontent-type: multipart/mixed; boundary=7a1f',
    content: `${ofNetty.join('')}--7a1f--`,
  };
  const coded = (line: string) => ({ head: `${file('b', 'b').head}\r\n${line}`, content: 'eA==' });

  test('what could be lost: 422, and nothing is stored', async (t) => {
    const server = await startServer(t);
    for (const [what, ...parts] of [
      ['in base64', file('a', 'a'), coded('Content-Transfer-Encoding: base64')],
      ['in quoted-printable', coded('content-transfer-encoding: Quoted-Printable')],
      ['compressed', coded('Content-Encoding: gzip')],
      ['two files of one name', file('a', 'image.jpg'), file('b', 'image.jpg')],
      ['one name in two folders', file('a', 'a/index.html'), file('b', 'b\\index.html')],
      ['one name in two forms', file('a', '\u00e4'), file('b', 'a\u0308')],
      ['one name in two spellings', file('a', 'a b'), file('b', '=?utf-8?q?a_b?=')],
      ['files inside a part', file('a', 'a'), part('b', inner, mixed)],
      ['files inside a part, from Netty', file('a', 'a'), netty],
      ['multipart, with a name', part('b', inner, { ...mixed, fileName: 'x' })],
      ['multipart, without boundary', part('b', inner, { type: 'multipart/x' })],
    ] as const) {
      const response = await postForm(server, 'list', multipartBody(parts));
      assert.deepEqual(await refusal(response), [422, 'invalid_body'], what);
      assert.deepEqual(await filesOnDisk(server), [], what);
    }
    const query = 'mutation ($a: Upload!, $b: Upload!) { a: upload(file: $a) b: upload(file: $b) }';
    const { status } = await postParts(server, [
      ['operations', { query, variables: { a: null, b: null } }],
      ['map', { 0: ['variables.a'], 1: ['variables.b'] }],
      ['0', 'x', 'x/a'],
      ['1', 'y', 'y/a'],
    ]);
    assert.deepEqual([status, await filesOnDisk(server)], [422, []]);
  });

  test('a part that says it is not coded, and a saved page, are stored', async (t) => {
    const server = await startServer(t);
    const parts = ['binary', '8bit', '7BIT', ''].map((coding, at) => {
      const { head, content } = file(`${at}`, `${at}`);
      return { head: `${head}\r\nContent-Transfer-Encoding: ${coding}`, content };
    });
    const page = part('a', 'x', { fileName: 'a.mht', type: 'multipart/related' });
    assert.equal((await postForm(server, 'list', multipartBody([...parts, page]))).status, 200);
    assert.equal((await stored(server)).length, 5);
  });
});
