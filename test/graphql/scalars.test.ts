/** The scalars of Spec §2.1, both ways. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kind } from 'graphql';
import { scalarRules, UploadedFile } from '../../dist/graphql/schema/scalars.js';

const id = '01a1fac9-75e7-7554-9879-966a0e24132b';

function rules(name: string): (typeof scalarRules)[string] {
  const found = scalarRules[name];
  assert.ok(found);
  return found;
}

test('LocalDateTime reads and writes one form, and refuses what is no date-time', () => {
  const { parseValue, parseLiteral, serialize } = rules('LocalDateTime');
  for (const [at, read] of [parseValue, serialize].entries()) {
    assert.equal(read('2024-05-01T10:15+02:00'), '2024-05-01T10:15:00', `read ${at}`);
    for (const bad of ['2024-02-30T10:15:00', 'now', '', 5, null, undefined, {}, new Date(0)]) {
      assert.throws(() => read(bad), /LocalDateTime needs/, JSON.stringify(bad));
    }
  }
  const seen = parseLiteral({ kind: Kind.STRING, value: '2024-05-01T10:15' });
  assert.equal(seen, '2024-05-01T10:15:00');
  assert.throws(() => parseLiteral({ kind: Kind.STRING, value: 'now' }), /LocalDateTime needs/);
  assert.throws(() => parseLiteral({ kind: Kind.INT, value: '5' }), /LocalDateTime needs/);
});

test('UUID reads either case and writes lower case', () => {
  const { parseValue, parseLiteral, serialize } = rules('UUID');
  for (const [at, read] of [parseValue, serialize].entries()) {
    assert.equal(read(id.toUpperCase()), id, `read ${at}`);
    for (const bad of ['', id.slice(1), `{${id}}`, 5, null])
      assert.throws(() => read(bad), /UUID/, JSON.stringify(bad));
  }
  assert.equal(parseLiteral({ kind: Kind.STRING, value: id }), id);
  assert.throws(() => parseLiteral({ kind: Kind.ENUM, value: id }), /UUID/);
});

test('Upload takes a file of a multipart request, and nothing that JSON can say', () => {
  const { parseValue, parseLiteral, serialize } = rules('Upload');
  const file = new UploadedFile({ facts: {}, storedName: 'a', store: () => undefined });
  assert.equal(parseValue(file), file);
  for (const bad of [{ facts: {}, keep: 1 }, 'file', null, []]) {
    assert.throws(() => parseValue(bad), /multipart/, JSON.stringify(bad));
  }
  assert.throws(() => parseLiteral({ kind: Kind.STRING, value: 'file' }), /variable/);
  assert.throws(() => serialize(file));
});
