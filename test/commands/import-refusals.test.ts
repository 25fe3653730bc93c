/** What `import` refuses, by its line, and what is in the store then: nothing of it (R50). */

import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { readLines } from '../../dist/commands/lines.js';
import { durableStores } from '../support/stores.ts';
import { importTo, newPlace } from '../support/transfer.ts';
import { account, article, comment, content, end } from '../support/transfer-lines.ts';
import { file, header, idOf, isEmpty, post } from '../support/transfer-lines.ts';
import { records, toText, todo, whole } from '../support/transfer-lines.ts';

const anAccount = { kind: 'account', ...account('scrypt$1$1$1$a$b') };

/** Lines that follow the header, of which the last one is refused. */
const refused: readonly (readonly [what: string, lines: readonly unknown[], reason: RegExp])[] = [
  ['no JSON', ['{"kind":'], /it is not JSON/],
  ['what follows blank lines', ['', ' \t\r', '[]'], /must be an object/],
  ['a long line', [`"${'x'.repeat(16_777_216)}"`], /is longer than 16777216 bytes/],
  ['a second header', [header], /format is no member of a post/],
  ['an unknown kind', [{ kind: 'page' }], /kind is not known/],
  ['the kind of a table', [{ ...comment, kind: 'pending' }], /kind is not known/],
  ['an unknown member', [{ ...todo, colour: 1 }], /colour is no member of a todo/],
  ['a name twice', ['{"kind":"todo","__proto__":{}}'], /a member named __proto__/],
  ['an id', [{ ...post, id: idOf(1).toUpperCase() }], /id must be a UUID/],
  ['a date', [{ ...post, createdAt: '2024-02-30T00:00:00' }], /createdAt must be a local/],
  ['a status', [{ ...post, status: 'GONE' }], /status must be one of/],
  ['a post without its date', [{ ...post, status: 'PUBLISHED' }], /publishedAt is required/],
  ['a year with a sign', [{ ...post, createdAt: '+12024-01-01T00:00:00' }], /createdAt must be/],
  ['a blank title', [{ ...post, title: ' ' }], /title must not be blank/],
  ['a missing member', [{ ...comment, content: undefined }], /content is required/],
  ['a lost comment', [{ ...comment, id: idOf(55), postId: idOf(9) }], /its post is not there/],
  ['an article without id', [{ ...article, document: { title: 'a' } }], /document\/id is required/],
  ['an article', [{ ...article, document: { id: 1, title: 7 } }], /title must be a text/],
  ['a deep article', [`{"kind":"article","document":${nested(64)}}`], /it is nested deeper than/],
  ['a rounded number', [`{"kind":"article","document":{"n":${2 ** 53}1}}`], /without rounding/],
  ['a long text', [{ ...post, content: 'x'.repeat(1_048_577) }], /longer than BODY_BYTES_MAX/],
  ['an account', [{ kind: 'account', username: ' a' }], /username must be composed/],
  ['the id of another account', [{ ...anAccount, id: idOf(9) }], /id must be the id that the/],
  ['a weak hash', [anAccount], /passwordHash must be/],
  ['a file name', [{ ...file, name: '../a' }], /name must be a file name/],
  ['a name in parts', [{ ...file, name: 'a\u0308' }], /name must be a file name/],
  ['content of no file', [content], /kind follows no file/],
  [
    'other content',
    [{ ...file, size: 9 }, content, { ...content, base64: 'aGVsbG8' }],
    /in base64/,
  ],
  ['much content', [{ ...file, size: 3 }, content], /more bytes than the file/],
  ['content that ends', [{ ...file, size: 7 }, content, todo], /"a.txt" is not whole/],
  ['what follows the end', [end, todo], /follows the end/],
];

function nested(levels: number): string {
  return `{"id":1,"title":"a","b":${'['.repeat(levels)}${']'.repeat(levels)}}`;
}

it('lines are taken up to their limit, however they arrive', async () => {
  const read = async (...chunks: readonly string[]): Promise<string> => {
    const lines: string[] = [];
    const input = Readable.from(chunks.map((chunk) => Buffer.from(chunk)));
    for await (const { number, bytes } of readLines(input, 4))
      lines.push(`${number}${bytes.toString()}`);
    return lines.join();
  };
  assert.equal(await read('aa', 'aa\n\nb', 'bbb\ncccc'), '1aaaa,3bbbb,4cccc');
  await assert.rejects(read('aaaa\nbb', 'bbb\n'), /^Error: Line 2: is longer than 4 bytes\.$/);
});

for (const [at, each] of durableStores.entries()) {
  describe(`import to a store ${each.name}`, { skip: each.skip }, () => {
    // Most reasons are found before a driver is asked.
    const some = at === 0 ? refused : refused.filter(([what]) => what === 'a lost comment');
    for (const [what, lines, reason] of some) {
      it(`refuses ${what}, and stores nothing of what came before`, async (t) => {
        const place = await newPlace(t, each);
        const given = [header, ...records, ...lines];
        const { code, output, errors } = await importTo(place, toText([...given, end]));
        assert.deepEqual([code, output], [1, '']);
        assert.match(errors, new RegExp(`^inkwell: Line ${given.length}: [^\\n]*\\.\\n$`));
        assert.match(errors, reason);
        await isEmpty(place);
      });
    }

    it('refuses an export that is cut, at whichever line', async (t) => {
      const place = await newPlace(t, each);
      const lines = whole.split('\n');
      for (let kept = 0; kept < lines.length; kept += 1) {
        const { errors } = await importTo(place, lines.slice(0, kept).join('\n'));
        assert.match(errors, /The input is empty|ends before its last line|Line 3: the content/);
      }
      await isEmpty(place);
    });
  });
}
