/** Holds the plan of the house (src/README.md) as data, and the house to the plan. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { bare, blocksOf, sectionOf, tableOf } from './support/markdown.ts';
import { layers, rooms } from './support/rooms.ts';
import { findCycle, projectFolder, readSources } from './support/source.ts';
import { toSourceFile, type SourceFile } from './support/source.ts';

/** The one place (a file, or a folder and all in it) that knows an npm package. */
const ownerOf: Readonly<Record<string, readonly string[]>> = {
  busboy: ['http/multipart/'],
  'fast-json-patch': ['domain/patch.ts'],
  graphql: ['graphql/'],
  'graphql-ws': ['graphql/ws/'],
  'json-merge-patch': ['domain/patch.ts'],
  uuid: ['domain/ids.ts'],
  ws: ['graphql/ws/'],
};
/** The same for packages that only some deployments install: they are loaded when chosen. */
const ownerOfOptional: typeof ownerOf = { pg: ['store/postgres/client/connection.ts'] };

/** Declarations of a foreign module are not ours to lay out. */
const sources = readSources().filter(({ path }) => !path.endsWith('.d.ts'));
const byPath = new Map(sources.map((file) => [file.path, file]));

function isWithin(path: string, places: readonly string[]): boolean {
  return places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place));
}

function strangersOf(file: SourceFile): string[] {
  const room = rooms[file.room];
  if (room === undefined) return [`${file.path}: the plan has no room ${file.room}`];
  return file.imports
    .filter(({ own }) => own)
    .map(({ kind, from }) => ({ kind, from, to: toSourceFile(from, '').room }))
    .filter(({ kind, from, to }) => {
      const allowed = kind === 'types' ? [...room.uses, ...(room.types ?? [])] : room.uses;
      return to !== file.room && !allowed.includes(to) && !allowed.includes(from);
    })
    .map(({ kind, from }) => `${file.path}: imports ${kind} from ${from}`);
}

function isBarrel(code: string): boolean {
  const rest = code.replaceAll(/^(?:import|export) [^;]*? from '[^']+';$/gm, '').trim();
  return rest === '' && /^export /m.test(code);
}

function linesWith(pattern: RegExp, except: readonly string[] = []): string[] {
  return sources
    .filter(({ path }) => !isWithin(path, except))
    .flatMap(({ path, code }) =>
      code
        .split('\n')
        .filter((line) => pattern.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    );
}

const partOf = (path: string): string => /^store\/\w+\//.exec(path)?.[0] ?? '';
const read = (path: string): string => readFileSync(join(projectFolder, path), 'utf8');

/** Every finding as a line, so that one run shows all of them. */
const findings: Readonly<Record<string, () => readonly string[]>> = {
  'rooms import only what the plan lets them import': () => sources.flatMap(strangersOf),
  'rooms are planned in one direction': () => {
    const order = Object.keys(rooms);
    return Object.entries(rooms).flatMap(([name, { uses, types = [] }]) =>
      [...uses, ...types]
        .filter((other) => order.indexOf(other.replace(/\/.*/, '')) >= order.indexOf(name))
        .map((other) => `${name} would import ${other}`),
    );
  },
  'files form no cycle': () => findCycle(byPath) ?? [],
  'no file is a barrel, which only passes on what others export': () =>
    sources.filter(({ code }) => isBarrel(code)).map(({ path }) => path),
  'packages are each known in one place': () =>
    sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ own, from }) => !own && !from.startsWith('node:'))
        .filter(({ from }) => !isWithin(path, ownerOf[from] ?? ownerOfOptional[from] ?? []))
        .map(({ from }) => `${path}: imports the package ${from}`),
    ),
  'packages are all in use': () => {
    const used = new Set(sources.flatMap(({ imports }) => imports.map(({ from }) => from)));
    return Object.keys(ownerOf).filter((name) => !used.has(name));
  },
  'the folders of the store have one way in': () =>
    sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ kind, from }) => kind === 'value' && partOf(from) !== '')
        .filter(({ from }) => partOf(from) !== partOf(path) && !from.endsWith('/open.ts'))
        // What the drivers on SQL share is theirs alone.
        .filter(
          ({ from }) => partOf(from) !== 'store/sql/' || !/sqlite|postgres/.test(partOf(path)),
        )
        .map(({ from }) => `${path}: imports ${from}`),
    ),
  'no driver beside memory is loaded before it is chosen': () =>
    sources
      .filter(({ path }) => /^(?:app|store\/(?!sqlite|postgres).*)\.ts$/.test(path))
      .flatMap(({ code }) => code.split('\n'))
      .filter((line) => /^import (?!type).*(?:sqlite|postgres)/.test(line)),
  'the process is touched in server.ts alone': () =>
    linesWith(/\bprocess\.|'node:process'/, ['server.ts']),
  'the message behind a request is for the HTTP server': () => {
    const uses = /\brequest\.(?:incoming|outgoing)\b|\b(?:incoming|outgoing)\b.* = request;/;
    return linesWith(uses, ['http/server/', 'http/message.ts']);
  },
  'no module holds state': () => [
    ...linesWith(/^(?:export )?(?:let|var) /),
    ...linesWith(/^(?:export )?const \w+ = new (?:Map|Set|WeakMap|WeakSet|Array)\b/),
    ...linesWith(/^(?:export )?const \w+(?:: (?!Readonly|readonly).*)? = (?:\[\]|\{\});$/),
  ],
  'folders have 15 files at most': () => {
    const folders = sources.map(({ path }) => path.replace(/[^/]+$/, ''));
    return folders.filter((one) => folders.filter((other) => other === one).length > 15);
  },
  'files open with a sentence on what they are for': () =>
    sources
      .filter(({ lines }) => !/^(?:#!.*\n)?\/\*\*/.test(lines.join('\n')))
      .map(({ path }) => path),
};

for (const [what, find] of Object.entries(findings)) {
  test(what, () => assert.equal(find().join('\n'), ''));
}

test('the rooms stand on the map and in the picture in the order and layers of the plan', () => {
  const listed = tableOf(sectionOf(read('src/README.md'), '## The rooms'));
  const onMap = listed.map(([room = '']) => bare(room).replace(/\/$|\.ts$/, ''));
  assert.deepEqual(onMap, Object.keys(rooms).toReversed());
  const [picture] = blocksOf(sectionOf(read('docs/architecture.md'), '## The rooms'));
  const drawn = picture?.text.trim().split('\n');
  assert.deepEqual(
    drawn?.map((line) => line.split(/ {2,}/)[0]),
    layers.map((names) => names.join(' · ')).toReversed(),
  );
});

test('the packages are those of package.json', () => {
  const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(
    read('package.json'),
  ) as Record<string, Record<string, unknown>>;
  assert.deepEqual(Object.keys(ownerOf).toSorted(), Object.keys(dependencies ?? {}).toSorted());
  assert.deepEqual(Object.keys(ownerOfOptional), Object.keys(peerDependencies ?? {}));
  const optional = Object.keys(ownerOfOptional).map((name) => [name, { optional: true }]);
  assert.deepEqual(peerDependenciesMeta, Object.fromEntries(optional));
});

test('these checks see what they are for', () => {
  const file = (...lines: string[]): SourceFile => toSourceFile('http/x.ts', lines.join('\n'));
  const { imports } = file(
    "import { a } from 'ws';",
    'import {',
    '  b,',
    "} from '@scope/name/deep';",
    "import type { C } from '../store/model.ts';",
    "export { d } from '../app.ts';",
    "// import e from 'nothing';",
    "const f = await import('node:fs');",
  );
  const found = imports.map(({ kind, from }) => `${kind} ${from}`).join();
  assert.equal(found, 'value ws,value @scope/name,types store/model.ts,value app.ts,value node:fs');
  assert.equal(strangersOf(file("import { a } from '../handlers/posts.ts';")).length, 1);
  assert.equal(strangersOf(file("import { a } from './b.ts';")).length, 0);
  assert.ok(isBarrel(file('/** All. */', '', "export { a } from './a.ts';").code));
  assert.ok(!isBarrel(file("export { a } from './a.ts';", 'export const b = 1;').code));
});
