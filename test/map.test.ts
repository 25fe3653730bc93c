/** Holds the map of the source (src/README.md) and its pictures (docs/architecture.md) to the sources. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { settings } from '../dist/config.js';
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

const pictures = readFileSync(join(projectFolder, 'docs/architecture.md'), 'utf8');

test('the pictures name only files and folders, settings and tables that exist', () => {
  const rooms = new Set(sources.filter(({ path }) => path.includes('/')).map(({ room }) => room));
  const named = Array.from(
    pictures.matchAll(/(?<![\w/.-])([a-z]+)\/[\w/-]*\w/g),
    ([path]) => path,
  ).filter((path) => rooms.has(path.replace(/\/.*/, '')));
  assert.ok(named.length > 20, `${named.length}`);
  const isKnown = (path: string): boolean =>
    sources.some((file) => file.path === `${path}.ts` || file.path.startsWith(`${path}/`));
  assert.deepEqual(
    named.filter((path) => !isKnown(path)),
    [],
  );

  const names = new Set<string>(Object.values(settings).map(({ name }) => name));
  const inCapitals = Array.from(pictures.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g), ([name]) => name);
  assert.deepEqual(
    inCapitals.filter((name) => !names.has(name)),
    [],
  );

  const created = sources
    .filter(({ path }) => path.startsWith('store/'))
    .flatMap(({ code }) => [...code.matchAll(/CREATE TABLE (?:inkwell\.)?(\w+)/g)])
    .map(([, name = '']) => name);
  assert.ok(created.length > 15, `${created.length}`);
  const isMissing = (name: string): boolean => !pictures.includes(`\`${name}\``);
  assert.deepEqual(created.filter(isMissing), []);
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
