/** Holds what the documents claim about speed to the figures of the bench (bench/figures.json). */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { sectionOf, tableOf } from './support/markdown.ts';
import { projectFolder } from './support/source.ts';

const read = (name: string): string => readFileSync(join(projectFolder, name), 'utf8');

interface Figures {
  readonly tables: readonly {
    readonly title: string;
    /** What is asked, µs of the peer, and the ratio of Inkwell to it. */
    readonly rows: readonly (readonly [string, number, number])[];
  }[];
}

/** The rows of the table in docs/production.md, by their names among the figures. */
const names = [
  'GET /posts/{id}',
  'GET /posts?limit=20',
  'postById with author, comments',
  'postById beside 10 % comments on others',
  'POST /posts',
  'POST …/comments',
];
const stores = ['In memory', 'SQLite', 'PostgreSQL'];

test('the chart shows the figures', async () => {
  const chart = join(projectFolder, 'bench/chart.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [chart]);
  assert.equal(stdout, read('docs/performance.svg'));
});

test('what half a core carries follows from the figures', () => {
  const { tables } = JSON.parse(read('bench/figures.json')) as Figures;
  const page = read('docs/production.md');
  const table = tableOf(sectionOf(page, '## What a node carries')).map((row) => row.slice(1));
  const expected = names.map((name) =>
    stores.map((store) => {
      const { rows = [] } = tables.find(({ title }) => title === store) ?? {};
      const [, peer, ratio] = rows.find(([found]) => found === name) ?? [];
      if (peer === undefined || ratio === undefined) return '';
      const count = Math.round(500_000 / (peer * ratio) / 100) * 100;
      return `${Math.round(peer * ratio)} µs, ${count.toLocaleString('en')}`;
    }),
  );
  assert.deepEqual(table, expected);
});

test('the README gives the least and the greatest ratio', () => {
  const { tables } = JSON.parse(read('bench/figures.json')) as Figures;
  const ratios = tables.flatMap(({ rows }) => rows.map(([, , ratio]) => ratio));
  const [, ...given] = /costs (.*) to (.*) of the same service/.exec(read('README.md')) ?? [];
  assert.deepEqual(given, [Math.min(...ratios), Math.max(...ratios)].map(String));
});
