/** The list of faults (test/faults/) fits the program, its tests and its documents. */

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countIn, parseFaults, readFaults } from './support/fault-list.ts';
import { projectFolder, readSources } from './support/source.ts';

const faults = readFaults();

/** In one line; undefined where there is no such file. */
function readText(...path: readonly string[]): string | undefined {
  const file = join(projectFolder, ...path);
  return existsSync(file) ? readFileSync(file, 'utf8').replaceAll(/\s+/g, ' ') : undefined;
}

/** Every finding as a line, so that one run shows all of them. */
function assertNone(findings: readonly string[]): void {
  assert.equal(findings.join('\n'), '');
}

test('each fault has a name of its own, and another text in the place of its own', () => {
  const names = faults.map(({ name }) => name);
  assertNone(names.filter((name, at) => names.indexOf(name) !== at));
  assertNone(
    faults.filter(({ text, replacement }) => text === replacement).map(({ name }) => name),
  );
});

test('the text of each fault stands exactly once in its file', () => {
  const found = faults.map(({ name, file, text }) => {
    const path = join(projectFolder, 'src', file);
    const count = existsSync(path) ? countIn(readFileSync(path, 'utf8'), text) : 'no file';
    return { name, file, count };
  });
  assertNone(
    found
      .filter(({ count }) => count !== 1)
      .map(({ name, file, count }) => `${name}: ${count} in ${file}`),
  );
});

test('each fault breaks a promise that stands where its row says', () => {
  assertNone(
    faults
      .filter(({ promise: { file, words = '' } }) => readText(file)?.includes(words) !== true)
      .map(({ name, promise: { file, words = '' } }) => `${name}: ${file} does not say ${words}`),
  );
});

test('the tests that must notice a fault exist', () => {
  assertNone(faults.filter(({ tests }) => tests.length === 0).map(({ name }) => name));
  const missing = faults.flatMap(({ name, tests }) =>
    tests
      .filter((each) => readText('test', each.file)?.includes(each.name ?? '') !== true)
      .map((each) => `${name}: ${each.file}: ${each.name ?? ''}`),
  );
  assertNone(missing);
});

/** Constants of which no behaviour can be seen to change, and why. */
const withoutFault: Readonly<Record<string, string>> = {
  countedShare: 'matters together with what was dropped alone',
  firstMilliseconds: 'a moment in the past',
  idMoment: 'a moment in the past',
  oneLimit: 'a text about limitMax',
  randomBytesPerId: 'the layout of an id',
};

test('each constant that bounds something has a fault', () => {
  const bounding =
    /^(?:export )?const (\w*(?:Max|Min|Milliseconds|Seconds|Bytes|Limit|Share|Factor|AtOnce|Length)\w*)(?:: \w+)? = /gm;
  const missing = readSources().flatMap(({ path, code }) =>
    Array.from(code.matchAll(bounding), ([, name = '']) => name)
      .filter((name) => withoutFault[name] === undefined)
      .filter((name) => !faults.some(({ file, text }) => file === path && text.includes(name)))
      .map((name) => `${path}: ${name}`),
  );
  assertNone(missing.filter((each) => !each.endsWith(': noBytes')));
});

test('a block that lacks a line is refused by name', () => {
  const block = '# a\npromise: b: c\nfile: d.ts\n-e\n+f\ntest: g.test.ts: h: i';
  assert.deepEqual(parseFaults('room', `${block}\n`), [
    {
      room: 'room',
      name: 'a',
      promise: { file: 'b', words: 'c' },
      file: 'd.ts',
      text: 'e',
      replacement: 'f',
      tests: [{ file: 'g.test.ts', name: 'h: i', isLong: false }],
    },
  ]);
  for (const line of ['# a', 'promise: b: c', 'file: d.ts']) {
    assert.throws(
      () => parseFaults('room', block.replace(`${line}\n`, '')),
      /room\.diff: one line/,
    );
  }
});
