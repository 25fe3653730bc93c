import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { download, file, filesOnDisk, form, postForm, refusal, stored } from '../support/files.ts';
import { pluck } from '../support/lists.ts';
import { boundary, multipartBody, part, withHead } from '../support/multipart.ts';
import { startServer } from '../support/server.ts';

suite('GET /api/multiparts', () => {
  test('is the fixed part and the files, with a boundary of its own each time', async (t) => {
    const server = await startServer(t);
    const fixed = ['abd', 'abc.text', 'text/plain', 'this is a text content'];
    assert.deepEqual(await download(server), [fixed]);
    const types = new Set<string>();
    for (const method of ['GET', 'GET', 'HEAD', 'HEAD']) {
      const response = await server.fetch('/api/multiparts', {
        method,
        headers: { Accept: 'multipart/form-data' },
      });
      await response.text();
      const type = response.headers.get('content-type') ?? '';
      assert.match(type, /^multipart\/form-data; boundary=[\w-]{56}$/);
      assert.deepEqual([response.status, response.headers.get('content-length')], [200, null]);
      types.add(type);
      await postForm(server, 'simple', form({ part: file('new', 'a.txt') }));
    }
    assert.equal(types.size, 4);
    const other = await server.fetch('/api/multiparts', { headers: { Accept: 'text/html' } });
    assert.deepEqual(await refusal(other), [406, 'not_acceptable']);
  });

  test('gives each file the media type of its extension', async (t) => {
    const server = await startServer(t);
    const unknown = ['c.png', 'd.bin', 'txt', 'e.txt.', 'f.constructor'];
    const texts = ['a.TXT', 'a.b.txt', '.txt'];
    const names = [...texts, 'b.Svg', ...unknown];
    const sent = names.map((name) => [name, file(name, name, 'x/y')]);
    assert.equal((await postForm(server, 'list', form(Object.fromEntries(sent)))).status, 200);
    const typeOf = (name: string): string => {
      if (texts.includes(name)) return 'text/plain';
      return name === 'b.Svg' ? 'application/svg+xml' : 'application/octet-stream';
    };
    const expected = names.map((name) => [name, name, typeOf(name), name]);
    assert.deepEqual(await stored(server), expected);
  });

  test('leaves out a file that is missing on the disk, and logs it', async (t) => {
    const server = await startServer(t);
    await postForm(server, 'list', form({ a: file('a', 'a'), b: file('b', 'b') }));
    const [run = ''] = await readdir(server.folder);
    await rm(join(server.folder, run, (await filesOnDisk(server)).toSorted()[1] ?? ''));
    assert.deepEqual(pluck(await stored(server), 0), ['a']);
    const errors = (): string =>
      server.logged
        .filter(({ level }) => level === 'error')
        .map(({ event, storedName }) => `${event}: ${String(storedName)}`)
        .join();
    assert.equal(errors(), 'stored file missing: b');
    // The head of a response to one file is not sent before the file is open.
    const masked = await refusal(await server.fetch('/api/multiparts/b'));
    assert.deepEqual(masked, [500, 'internal_error']);
    assert.equal(errors(), 'stored file missing: b,stored file missing: b');
    await postForm(server, 'list', form({ b: file('again', 'b') }));
    assert.deepEqual(pluck(await stored(server), 3), ['a', 'again']);
  });
});

suite('POST /api/multiparts/simple', () => {
  test('stores part, and not name, which it may have in any place', async (t) => {
    const server = await startServer(t);
    const a = file('hällo', 'a.txt', 'text/plain');
    const b = file('2', 'b.txt');
    for (const parts of [{ name: 'any', part: a }, { part: a, name: 'any' }, { part: b }]) {
      const response = await postForm(server, 'simple', form(parts));
      assert.deepEqual([response.status, await response.text()], [200, '']);
    }
    const [first, second] = await stored(server);
    assert.deepEqual(first, ['a.txt', 'a.txt', 'text/plain', 'hällo']);
    assert.deepEqual(second, ['b.txt', 'b.txt', 'text/plain', '2']);
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
    for (const [length, status] of [
      [1_025, 413],
      [1_024, 200],
    ] as const) {
      const sent = form({ name: 'n'.repeat(length), part: file('1', 'a.txt') });
      assert.equal((await postForm(server, 'simple', sent)).status, status);
    }
  });
});

suite('POST /api/multiparts/list', () => {
  test('stores every part byte for byte, also text and parts without a file name', async (t) => {
    const server = await startServer(t);
    const odd = Buffer.from([0xff, 0x00, 0x0d, 0x0a, 0xc3]);
    const octets = { fileName: '', type: 'application/octet-stream' };
    const body = multipartBody([
      part('a', odd, { type: 'text/plain; charset=iso-8859-1' }),
      part('b', '<svg/>', { type: 'Application/SVG+xml' }),
      part('c', '{}', { type: 'application/json' }),
      part('d', 'plain'),
      part('e', '5', octets),
      part('nothing chosen', '', octets),
      part('f', '6', { fileName: '..' }),
      part('g', '7', { fileName: '../../etc/passwd.txt' }),
      part('h', '8', { fileName: 'a/' }),
      part('i', '9', { fileName: 'C:\\dir\\b.txt' }),
      part('j', '10', { fileName: '..\\.' }),
      part('k', '11', { type: 'image/svg+xml' }),
    ]);
    assert.equal((await postForm(server, 'list', body)).status, 200);
    const names = pluck(await stored(server), 0);
    const extensions = names.map((name) => name.replace(/^[0-9a-f-]{36}/, ''));
    const expected = '.txt .svg .bin .txt .bin .txt passwd.txt .txt b.txt .txt .bin';
    assert.equal(extensions.join(' '), expected);
    const all = await (await server.fetch('/api/multiparts')).arrayBuffer();
    assert.ok(Buffer.from(all).includes(odd));
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
    const named = [...control, `${'é'.repeat(127)}xx`].map((name) =>
      form({ good: file('1', 'good.txt'), bad: file('2', name) }),
    );
    const broken = ['', 'X', 'Content-Disposition: attachment'].map(withHead);
    for (const [at, parts] of [...named, ...broken].entries()) {
      const response = await postForm(server, 'list', parts);
      assert.deepEqual(await refusal(response), [400, 'invalid_multipart'], `${at}`);
    }
    assert.deepEqual(await filesOnDisk(server), []);
  });

  test('replaces a file of the same name in its place; a body may have no parts', async (t) => {
    const server = await startServer(t);
    await postForm(server, 'list', form({ a: file('1', 'a'), b: file('2', 'b') }));
    await postForm(server, 'list', form({ z: file('3', 'c'), y: file('4', 'a') }));
    assert.equal((await postForm(server, 'list', `--${boundary}--\r\n`)).status, 200);
    const found = (await stored(server)).map(([name, , , content]) => name + content);
    assert.deepEqual(found, ['a4', 'b2', 'c3']);
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
});
