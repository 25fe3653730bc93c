/** Holds the plan of the house (src/README.md) as data, and the house to the plan. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, test } from 'node:test';
import { bare, blocksOf, sectionOf, tableOf } from './support/markdown.ts';
import { layers, rooms } from './support/rooms.ts';
import {
  findCycle,
  projectFolder,
  readSources,
  toSourceFile,
  type SourceFile,
} from './support/source.ts';

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

const filesPerFolderMax = 15;

/** Declarations of a foreign module are not ours to lay out. */
const sources = readSources().filter(({ path }) => !path.endsWith('.d.ts'));
const byPath = new Map(sources.map((file) => [file.path, file]));

/** Every finding as a line, so that one run shows all of them. */
function assertNone(findings: readonly string[]): void {
  assert.equal(findings.join('\n'), '');
}

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

describe('the rooms', () => {
  it('import only what the plan lets them import', () => {
    assertNone(sources.flatMap(strangersOf));
  });

  it('stand on the map in the order of the plan', () => {
    const map = readFileSync(join(projectFolder, 'src/README.md'), 'utf8');
    const listed = tableOf(sectionOf(map, '## The rooms')).map(([room = '']) => bare(room));
    const planned = Object.keys(rooms).toReversed();
    assert.deepEqual(
      listed.map((room) => room.replace(/\/$|\.ts$/, '')),
      planned,
    );
  });

  it('are drawn in the layers of the plan', () => {
    const page = readFileSync(join(projectFolder, 'docs/architecture.md'), 'utf8');
    const [picture] = blocksOf(sectionOf(page, '## The rooms'));
    const drawn = picture?.text
      .trim()
      .split('\n')
      .map((line) => line.split(/ {2,}/)[0]);
    assert.deepEqual(drawn, layers.map((names) => names.join(' · ')).toReversed());
  });

  it('are planned in one direction', () => {
    const order = Object.keys(rooms);
    for (const [name, { uses, types = [] }] of Object.entries(rooms)) {
      for (const other of [...uses, ...types]) {
        const room = other.replace(/\/.*/, '');
        assert.ok(order.indexOf(room) < order.indexOf(name), `${name} would import ${other}`);
      }
    }
  });

  it('hold no cycle of files', () => {
    assert.equal(findCycle(byPath)?.join(' → '), undefined);
  });

  it('have no barrel: a file that only passes on what others export', () => {
    assertNone(sources.filter(({ code }) => isBarrel(code)).map(({ path }) => path));
  });
});

describe('the packages', () => {
  it('are each known in one place', () => {
    const foreign = sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ own, from }) => !own && !from.startsWith('node:'))
        .filter(({ from }) => !isWithin(path, ownerOf[from] ?? ownerOfOptional[from] ?? []))
        .map(({ from }) => `${path}: imports the package ${from}`),
    );
    assertNone(foreign);
  });

  it('are those of package.json, and all in use', () => {
    const text = readFileSync(join(projectFolder, 'package.json'), 'utf8');
    const { dependencies, peerDependencies, peerDependenciesMeta } = JSON.parse(text) as Record<
      string,
      Record<string, unknown>
    >;
    assert.deepEqual(Object.keys(ownerOf).toSorted(), Object.keys(dependencies ?? {}).toSorted());
    assert.deepEqual(Object.keys(ownerOfOptional), Object.keys(peerDependencies ?? {}));
    assert.deepEqual(
      peerDependenciesMeta,
      Object.fromEntries(Object.keys(ownerOfOptional).map((name) => [name, { optional: true }])),
    );
    const used = new Set(sources.flatMap(({ imports }) => imports.map(({ from }) => from)));
    assertNone(Object.keys(ownerOf).filter((name) => !used.has(name)));
  });
});

describe('the store', () => {
  const partOf = (path: string): string => /^store\/\w+\//.exec(path)?.[0] ?? '';

  it('has one way into each of its folders', () => {
    const others = sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ kind, from }) => kind === 'value' && partOf(from) !== '')
        .filter(({ from }) => partOf(from) !== partOf(path) && !from.endsWith('/open.ts'))
        // What the drivers on SQL share is theirs alone.
        .filter(
          ({ from }) => partOf(from) !== 'store/sql/' || !/sqlite|postgres/.test(partOf(path)),
        )
        .map(({ from }) => `${path}: imports ${from}`),
    );
    assertNone(others);
  });

  it('loads no driver beside memory before it is chosen', () => {
    const early = sources
      .filter(({ path }) => /^(?:app|store\/(?!sqlite|postgres).*)\.ts$/.test(path))
      .flatMap(({ code }) => code.split('\n'))
      .filter((line) => /^import (?!type).*(?:sqlite|postgres)/.test(line));
    assertNone(early);
  });
});

describe('the sources', () => {
  it('touch the process in server.ts alone', () => {
    assertNone(linesWith(/\bprocess\.|'node:process'/, ['server.ts']));
  });

  it('leave the message behind a request to the HTTP server', () => {
    const uses = /\brequest\.(?:incoming|outgoing)\b|\b(?:incoming|outgoing)\b.* = request;/;
    assertNone(linesWith(uses, ['http/server/', 'http/message.ts']));
  });

  it('hold no state in a module', () => {
    assertNone(linesWith(/^(?:export )?(?:let|var) /));
    assertNone(linesWith(/^(?:export )?const \w+ = new (?:Map|Set|WeakMap|WeakSet|Array)\b/));
    assertNone(linesWith(/^(?:export )?const \w+(?:: (?!Readonly|readonly).*)? = (?:\[\]|\{\});$/));
  });

  it(`lie in folders of ${filesPerFolderMax} files at most`, () => {
    const folders = sources.map(({ path }) => path.replace(/[^/]+$/, ''));
    const isFull = (folder: string): boolean =>
      folders.filter((other) => other === folder).length > filesPerFolderMax;
    assertNone([...new Set(folders)].filter(isFull));
  });

  it('open with a sentence on what they are for', () => {
    const silent = sources.filter(({ lines }) => !/^(?:#!.*\n)?\/\*\*/.test(lines.join('\n')));
    assertNone(silent.map(({ path }) => path));
  });
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
