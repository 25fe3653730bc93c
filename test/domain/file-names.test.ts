import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { createFileName, mediaTypeOf, toFileName } from '../../dist/domain/file-names.js';
import { AppError } from '../../dist/errors.js';

suite('a file name of a client', () => {
  test('counts from its last slash or backslash', () => {
    for (const given of ['a.txt', '/etc/a.txt', 'C:\\dir\\a.txt', '../../a.txt', '/x\\../a.txt']) {
      assert.equal(toFileName(given), 'a.txt', given);
    }
    assert.equal(toFileName('.hidden'), '.hidden');
    assert.equal(toFileName('...'), '...');
    assert.equal(toFileName('__proto__'), '__proto__');
  });

  test('is none where nothing is left or where it stands for a folder', () => {
    for (const given of [undefined, '', '.', '..', '/', 'a/', 'a\\', '/..', '..\\.']) {
      assert.equal(toFileName(given), undefined, given);
    }
  });

  test('is refused for a control character', () => {
    for (const given of ['a\0', 'a\r\nX: y', 'a\u007f', 'a\u0085', '\u001b[2J']) {
      assert.throws(() => toFileName(given), AppError, JSON.stringify(given));
    }
  });

  test('has up to 255 bytes of UTF-8', () => {
    const longest = `${'é'.repeat(127)}x`;
    assert.equal(toFileName(longest), longest);
    assert.throws(() => toFileName(`${longest}x`), AppError);
    assert.equal(toFileName(`${'d/'.repeat(200)}x`), 'x');
  });
});

suite('a stored file', () => {
  test('without a name gets one with the extension of its media type', () => {
    const name = (type: string): string => createFileName(type, () => 'id');
    assert.equal(name('text/plain'), 'id.txt');
    assert.equal(name('application/svg+xml'), 'id.svg');
    for (const type of ['image/svg+xml', 'text/html', '', 'constructor', 'text/plainx']) {
      assert.equal(name(type), 'id.bin', type);
    }
  });

  test('has the media type of its extension, in any case', () => {
    const types = [
      ['a.txt', 'text/plain'],
      ['a.b.TXT', 'text/plain'],
      ['.txt', 'text/plain'],
      ['a.Svg', 'application/svg+xml'],
      ['a.bin', 'application/octet-stream'],
      ['txt', 'application/octet-stream'],
      ['a.txt.', 'application/octet-stream'],
      ['a.constructor', 'application/octet-stream'],
    ] as const;
    for (const [name, type] of types) assert.equal(mediaTypeOf(name), type, name);
  });
});
