/** Holds the map of the source (src/README.md) to the sources. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sectionOf, tableOf } from './support/markdown.ts';
import { projectFolder, readSources } from './support/source.ts';

const sources = readSources();
const map = readFileSync(join(projectFolder, 'src/README.md'), 'utf8');

test('the map names only files that exist', () => {
  const named = Array.from(map.matchAll(/`([a-z][\w/-]*\/[\w-]+\.ts)`/g), ([, path = '']) => path);
  const isKnown = (path: string): boolean =>
    sources.some((file) => file.path === path || file.path.endsWith(`/${path}`));
  assert.deepEqual(
    named.filter((path) => !path.startsWith('test/') && !isKnown(path)),
    [],
  );
});

test('the rings have about as many lines as the map says', () => {
  const claimed = tableOf(sectionOf(map, '## Three rings')).map((row) =>
    Number(row.at(-1)?.replace(',', '')),
  );
  const lines = [0, 0, 0];
  for (const { path, code } of sources) {
    const ring = path.startsWith('graphql/') ? 1 : /^store\/(?:sql|postgres)/.test(path) ? 2 : 0;
    lines[ring] = (lines[ring] ?? 0) + code.split('\n').filter((line) => line.trim()).length;
  }
  for (const [ring, count] of lines.entries()) {
    const claim = claimed[ring] ?? 0;
    assert.ok(Math.abs(count - claim) < claim / 8, `ring ${ring + 1}: ${count} lines`);
  }
});
