/** Holds the pages for people to the code: what a table says is what the program does. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { settings } from '../dist/config.js';
import { httpStatusOf } from '../dist/errors.js';
import { createRoutes } from '../dist/handlers/routes.js';
import { bare, sectionOf, tableOf } from './support/markdown.js';
import { projectFolder } from './support/source.js';

const read = (name: string): string => readFileSync(join(projectFolder, name), 'utf8');
const readme = read('README.md');
const map = read('src/README.md');
const security = read('SECURITY.md');

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}
const manifest = JSON.parse(read('package.json')) as Manifest;

interface Lock {
  readonly packages: Readonly<Record<string, { dev?: boolean; hasInstallScript?: boolean }>>;
}
const lock = JSON.parse(read('package-lock.json')) as Lock;

/** The first cells of each row of the table under a heading. */
function firstCells(heading: string, count: number): string[][] {
  return tableOf(sectionOf(readme, heading)).map((row) => row.slice(0, count).map(bare));
}

/** Stands for any set of handlers: the table is asked for its paths only. */
const anyHandlers: unknown = new Proxy(() => anyHandlers, {
  get: (_target, key) => (key === Symbol.iterator ? undefined : anyHandlers),
});

describe('the README', () => {
  it('lists the routes of the program, in their order', () => {
    const routes = createRoutes(anyHandlers as Parameters<typeof createRoutes>[0]);
    assert.deepEqual(
      firstCells('## Routes', 2),
      routes.map(({ method, path }) => [method, path]),
    );
  });

  it('lists the settings with their defaults, units and meanings', () => {
    assert.deepEqual(
      tableOf(sectionOf(readme, '## Settings')).map(([name = '', fallback = '', ...rest]) => [
        bare(name),
        bare(fallback),
        ...rest,
      ]),
      Object.values(settings).map(({ name, fallback, unit, meaning }) => [
        name,
        fallback,
        unit,
        meaning,
      ]),
    );
  });

  it('lists the error codes with their statuses', () => {
    assert.deepEqual(
      firstCells('## Error codes', 2),
      Object.entries(httpStatusOf).map(([code, status]) => [code, String(status)]),
    );
  });

  it('lists the codes of GraphQL errors', () => {
    // A type has no values at run time: its text is compared.
    const [union = ''] = /type GraphqlCode =[^;]*/.exec(read('src/graphql/errors.ts')) ?? [];
    const section = sectionOf(readme, '## Error codes');
    const named = section.slice(section.indexOf('GraphQL errors carry'));
    const [sentence = ''] = named.split('\n\n');
    assert.deepEqual(
      (sentence.match(/`[A-Z_]+`/g) ?? []).map(bare).toSorted(),
      (union.match(/'[A-Z_]+'/g) ?? []).map((code) => code.slice(1, -1)).toSorted(),
    );
  });

  it('lists the packages', () => {
    const named = (heading: string): string[] => firstCells(heading, 1).flat().toSorted();
    assert.deepEqual(named('### At run time'), Object.keys(manifest.dependencies).toSorted());
    assert.deepEqual(
      named('### For development'),
      Object.keys(manifest.devDependencies).toSorted(),
    );
  });

  it('counts the packages of the production tree, none of which runs a script', () => {
    const production = Object.entries(lock.packages).filter(([path, entry]) => {
      return path !== '' && entry.dev !== true;
    });
    assert.equal(production.length, 9);
    assert.match(readme, /\b9 packages\b/);
    assert.ok(production.every(([, entry]) => entry.hasInstallScript !== true));
  });

  it('names only scripts that exist', () => {
    for (const [, name = ''] of readme.matchAll(/`npm run ([\w:]+)`/g)) {
      assert.ok(manifest.scripts[name], `npm run ${name}`);
    }
  });
});

describe('the pages', () => {
  const pages = { 'README.md': readme, 'src/README.md': map, 'SECURITY.md': security };

  it('link to files that exist', () => {
    for (const [page, text] of Object.entries(pages)) {
      for (const [, target = ''] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
        assert.ok(existsSync(join(projectFolder, page, '..', target)), `${page}: ${target}`);
      }
    }
  });

  it('name only tests that exist', () => {
    for (const [page, text] of Object.entries(pages)) {
      for (const [, path = ''] of text.matchAll(/`(test\/[\w/.-]+\.ts)`/g)) {
        assert.ok(existsSync(join(projectFolder, path)), `${page}: ${path}`);
      }
    }
  });

  it('show every room on the map', () => {
    const listed = tableOf(sectionOf(map, '## The rooms')).map(([room = '']) => bare(room));
    const rooms = readdirSync(join(projectFolder, 'src'), { withFileTypes: true })
      .filter(({ name }) => name !== 'README.md')
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    assert.deepEqual(listed.toSorted(), rooms.toSorted());
  });
});
