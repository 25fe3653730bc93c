/** The records of decisions: their numbers, and the two lists that lead to them. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectFolder } from './support/source.ts';

const folder = join(projectFolder, 'docs/decisions');
const names = readdirSync(folder)
  .filter((name) => name !== 'README.md')
  .toSorted();
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

describe('the records of decisions', () => {
  it('are numbered without a gap', () => {
    assert.ok(names.length >= 21);
    assert.deepEqual(
      names.map((name) => Number(name.slice(0, 3))),
      names.map((_, at) => at + 1),
    );
  });

  for (const name of names) {
    it(`${name}: has a date and alternatives, and is listed by its title`, () => {
      const text = read(name);
      const [, title = ''] = /^# \d{3}\. (.+)$/m.exec(text) ?? [];
      assert.match(text, /^Accepted, \d{4}-\d\d-\d\d\.$/m);
      for (const heading of ['## Why', '## Alternatives', '## What follows']) {
        assert.ok(text.includes(`\n${heading}\n`), heading);
      }
      const [, row = ''] = read('README.md').split(`(${name})`);
      assert.ok((row.split('\n')[0] ?? '').includes(title), 'docs/decisions/README.md');
      assert.ok(read('../../src/README.md').includes(`[${title}](../docs/decisions/${name})`));
    });
  }
});
