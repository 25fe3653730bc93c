import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { download, file, filesOnDisk, form, postForm, refusal, stored } from '../support/files.ts';
import { pluck } from '../support/lists.ts';
import { boundary, multipartBody, part, withHead } from '../support/multipart.ts';
import { startServer } from '../support/server.ts';

suite('GET /api/multiparts', () => {
  test('begins with the fixed part, and holds nothing else at first', async (t) => {
    const server = await startServer(t);
    const fixed = ['abd', 'abc.text', 'text/plain', 'this is a text content'];
    assert.deepEqual(await download(server), [fixed]);
  });

  test('is multipart/form-data with a boundary of its own each time, and nothing else', async (t) => {
    const server = await startServer(t);
    const typeOf = async (): Promise<string> => {
      const headers = { Accept: 'multipart/form-data' };
      const response = await server.fetch('/api/multiparts', { headers });
      await response.text();
      return response.headers.get('content-type') ?? '';
    };
    const types = await Promise.all([typeOf(), typeOf()]);
    for (const [at, type] of types.entries())
      assert.match(type, /^multipart\/form-data; boundary=[\w-]{56}$/, `type ${at}`);
    assert.notEqual(types[0], types[1]);
    const other = await server.fetch('/api/multiparts', { headers: { Accept: 'text/html' } });
    assert.deepEqual(await refusal(other), [406, 'not_acceptable']);
  });

  test('answers HEAD without the list', async (t) => {
    const server = await startServer(t);
    for (const text of ['old', 'new']) {
      await postForm(server, 'simple', form({ part: file(text, 'a.txt') }));
      const head = await server.fetch('/api/multiparts', { method: 'HEAD' });
      assert.deepEqual([head.status, head.headers.get('content-length')], [200, null], text);
      assert.match(
        head.headers.get('content-type') ?? '',
        /^multipart\/form-data; boundary=/,
        text,
      );
    }
  });

  test('gives each file the media type of its extension', async (t) => {
    const server = await startServer(t);
    const unknown = ['c.png', 'd.bin', 'txt', 'e.txt.', 'f.constructor'];
    const types = [
      ['a.TXT', 'text/plain'],
      ['a.b.txt', 'text/plain'],
      ['.txt', 'text/plain'],
      ['b.Svg', 'application/svg+xml'],
      ...unknown.map((name) => [name, 'application/octet-stream'] as const),
    ] as const;
    const sent = types.map(([name]) => [name, file(name, name, 'x/y')]);
    assert.equal((await postForm(server, 'list', form(Object.fromEntries(sent)))).status, 200);
    const expected = types.map(([name, type]) => [name, name, type, name]);
    assert.deepEqual(await stored(server), expected);
  });

  test('leaves out a file that is missing on the disk, and logs it', async (t) => {
    const server = await startServer(t);
    const files = { a: file('a', 'a'), b: file('b', 'b'), c: file('c', 'c') };
    await postForm(server, 'list', form(files));
    const [run = ''] = await readdir(server.folder);
    await rm(join(server.folder, run, (await filesOnDisk(server)).toSorted()[1] ?? ''));
    assert.deepEqual(pluck(await stored(server), 0), ['a', 'c']);
    const errors = (): readonly unknown[] =>
      server.logged
        .filter(({ level }) => level === 'error')
        .map(({ event, storedName }) => [event, storedName]);
    const told = ['stored file missing', 'b'];
    assert.deepEqual(errors(), [told]);
    // The head of a response to one file is not sent before the file is open.
    assert.equal((await server.fetch('/api/multiparts/a')).status, 200);
    const masked = await refusal(await server.fetch('/api/multiparts/b'));
    assert.deepEqual(masked, [500, 'internal_error']);
    assert.deepEqual(errors(), [told, told]);
    const head = await server.fetch('/api/multiparts/a', { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, '1']);
    await postForm(server, 'list', form({ b: file('again', 'b') }));
    assert.deepEqual(pluck(await stored(server), 3), ['a', 'again', 'c']);
  });
});

suite('POST /api/multiparts/simple', () => {
  test('stores part, and not name', async (t) => {
    const server = await startServer(t);
    const parts = form({ name: 'any', part: file('hällo', 'a.txt', 'text/plain') });
    const response = await postForm(server, 'simple', parts);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), '');
    assert.deepEqual(await stored(server), [['a.txt', 'a.txt', 'text/plain', 'hällo']]);
  });

  test('takes the parts in any order, and no name at all', async (t) => {
    const server = await startServer(t);
    await postForm(server, 'simple', form({ part: file('1', 'a.txt'), name: 'any' }));
    await postForm(server, 'simple', form({ part: file('2', 'b.txt') }));
    assert.equal((await stored(server)).length, 2);
  });

  test('needs one file, ignores text beside it, and stores nothing else', async (t) => {
    const server = await startServer(t);
    const one = part('part', '1', { fileName: 'a.txt' });
    const nothingChosen = part('other', '', { fileName: '' });
    for (const [what, parts, pointer] of [
      ['no part', [part('name', 'any')], '/part'],
      ['nothing chosen', [part('part', '', { fileName: '' })], '/part'],
      ['a second file', [one, part('other', '2', { fileName: 'b.txt' })], ''],
      ['a second part', [one, part('part', '2')], ''],
      ['a file as name', [one, part('name', '2', { fileName: 'b.txt' })], ''],
    ] as const) {
      const response = await postForm(server, 'simple', multipartBody(parts));
      const { errors } = (await response.clone().json()) as { errors: { pointer: string }[] };
      assert.deepEqual(await refusal(response), [422, 'invalid_body'], what);
      assert.deepEqual(pluck(errors, 'pointer'), [pointer], what);
    }
    assert.deepEqual(await filesOnDisk(server), []);
    const parts = [part('_charset_', 'utf-8'), one, part('action', 'save'), nothingChosen];
    assert.equal((await postForm(server, 'simple', multipartBody(parts))).status, 200);
    assert.deepEqual(pluck(await stored(server), 0), ['a.txt']);
  });

  test('bounds the text of name', async (t) => {
    const server = await startServer(t, { env: { BODY_BYTES_MAX: '1024' } });
    const long = form({ name: 'n'.repeat(1_025), part: file('1', 'a.txt') });
    const response = await refusal(await postForm(server, 'simple', long));
    assert.deepEqual(response, [413, 'content_too_large']);
    const short = form({ name: 'n'.repeat(1_024), part: file('1', 'a.txt') });
    assert.equal((await postForm(server, 'simple', short)).status, 200);
  });
});

suite('POST /api/multiparts/list', () => {
  test('stores every part byte for byte, also text and parts without a file name', async (t) => {
    const server = await startServer(t);
    const odd = Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0xc3]);
    const body = multipartBody([
      part('a', odd, { type: 'text/plain; charset=iso-8859-1' }),
      part('b', '<svg/>', { type: 'Application/SVG+xml' }),
      part('c', '{}', { type: 'application/json' }),
      part('d', 'plain'),
      part('e', '5', { fileName: '', type: 'application/octet-stream' }),
      part('nothing chosen', '', { fileName: '', type: 'application/octet-stream' }),
      part('f', '6', { fileName: '..' }),
      part('g', '7', { fileName: '../../etc/passwd.txt' }),
      part('h', '8', { fileName: 'a/' }),
      part('i', '9', { fileName: 'C:\\dir\\b.txt' }),
      part('j', '10', { fileName: '..\\.' }),
      part('k', '11', { type: 'image/svg+xml' }),
    ]);
    assert.equal((await postForm(server, 'list', body)).status, 200);
    const response = await server.fetch('/api/multiparts');
    const names = (await stored(server)).map(([name]) => name);
    const extensions = names.map((name) => name.replace(/^[0-9a-f-]{36}/, ''));
    const expected = '.txt .svg .bin .txt .bin .txt passwd.txt .txt b.txt .txt .bin';
    assert.deepEqual(extensions, expected.split(' '));
    assert.ok(Buffer.from(await response.arrayBuffer()).includes(odd));
  });

  test('keeps names that break neither the header nor a browser', async (t) => {
    const server = await startServer(t);
    const names = [
      'a"b.txt',
      "it's.txt",
      '日本語.txt',
      'a;b=c.txt',
      '__proto__',
      '😀.svg',
      ' .txt',
    ];
    names.push('...', `${'é'.repeat(127)}x`);
    const entries = names.map((name, index) => [`n${index}`, file('x', name)] as const);
    assert.equal((await postForm(server, 'list', form(Object.fromEntries(entries)))).status, 200);
    assert.deepEqual(pluck(await stored(server), 1), names);
  });

  test('refuses a name with a control character or of more than 255 bytes', async (t) => {
    const server = await startServer(t);
    const control = ['a\r\nX-Evil: 1', 'a\u0000b', 'a\u007f', 'a\u0085', '\u001b[2J'];
    for (const name of [...control, `${'é'.repeat(127)}xx`]) {
      const parts = form({ good: file('1', 'good.txt'), bad: file('2', name) });
      const response = await postForm(server, 'list', parts);
      assert.deepEqual(await refusal(response), [400, 'invalid_multipart'], name);
    }
    assert.deepEqual(await filesOnDisk(server), []);
  });

  test('replaces a file of the same name in its place', async (t) => {
    const server = await startServer(t);
    await postForm(server, 'list', form({ a: file('1', 'a'), b: file('2', 'b') }));
    await postForm(server, 'list', form({ z: file('3', 'c'), y: file('4', 'a') }));
    const found = (await stored(server)).map(([name, , , content]) => name + content);
    assert.deepEqual(found, ['a4', 'b2', 'c3']);
  });

  test('takes a body without parts', async (t) => {
    const server = await startServer(t);
    assert.equal((await postForm(server, 'list', `--${boundary}--\r\n`)).status, 200);
  });

  test('logs one line per file with its six values', async (t) => {
    const server = await startServer(t);
    const parts = form({ one: file('1', 'x/a.txt', 'text/plain;charset=latin1'), two: 'text' });
    await postForm(server, 'list', parts);
    const lines = server.logged.filter(({ event }) => event === 'file uploaded');
    const told = lines.map((line) =>
      ['name', 'fileName', 'contentType', 'charset', 'size'].map((name) => line[name]),
    );
    assert.deepEqual(told, [
      ['one', 'a.txt', 'text/plain', 'latin1', 1],
      ['two', '', 'text/plain', 'utf-8', 4],
    ]);
    const onDisk = new Set(await filesOnDisk(server));
    assert.deepEqual(new Set(lines.map((line) => line['temporaryName'])), onDisk);
  });

  test('refuses a broken part and keeps the connection usable', async (t) => {
    const server = await startServer(t);
    for (const head of ['', 'X', 'Content-Disposition: attachment']) {
      const response = await refusal(await postForm(server, 'list', withHead(head)));
      assert.deepEqual(response, [400, 'invalid_multipart'], head);
    }
    assert.deepEqual(await filesOnDisk(server), []);
    assert.equal((await postForm(server, 'list', form({ a: file('1', 'a') }))).status, 200);
  });
});
