/** Holds the pages for people to the code: tables and figures, and examples pasted into a shell. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { describe, it, test } from 'node:test';
import { settings } from '../dist/config.js';
import { graphqlCodes, httpStatusOf } from '../dist/errors.js';
import { bare, type Block, blocksOf, sectionOf, tableOf } from './support/markdown.ts';
import { runProgram } from './support/program.ts';
import { routes } from './support/reference.ts';
import { noShell } from './support/shell.ts';
import { projectFolder } from './support/source.ts';

const read = (name: string): string => readFileSync(join(projectFolder, name), 'utf8');
const readme = read('README.md');
const docNames = readdirSync(join(projectFolder, 'docs')).filter((name) => name.endsWith('.md'));
const doc = (name: string): string => read(join('docs', name));

interface Manifest {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}
const manifest = JSON.parse(read('package.json')) as Manifest;

interface Lock {
  readonly packages: Readonly<
    Record<string, { dev?: boolean; link?: boolean; hasInstallScript?: boolean }>
  >;
}
const lock = JSON.parse(read('package-lock.json')) as Lock;

/** Every TypeScript file below a folder, as one text. */
function textsBelow(folder: string): string {
  return readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => read(join(folder, name)))
    .join('\n');
}

const packages = Object.keys(manifest.dependencies);
const methods = new Map<string, string[]>();
for (const { method, path } of routes) methods.set(path, [...(methods.get(path) ?? []), method]);

const toRow = ({ name, fallback, unit, meaning }: (typeof settings)[keyof typeof settings]) => {
  return [name, fallback, unit, meaning];
};

/** The first cells of the rows of each table, and what the program has. */
const tables: readonly (readonly [page: string, heading: string, rows: readonly string[][]])[] = [
  ['contract.md', '## 4. Routes', [...methods].map(([path, names]) => [path, names.join(', ')])],
  ['settings.md', '## Table of settings', Object.values(settings).map(toRow)],
  ['errors.md', '## Error codes', Object.entries(httpStatusOf).map((row) => row.map(String))],
  ['graphql.md', '### Codes and their statuses', graphqlCodes.map((code) => [code])],
  ['development.md', '## Packages at run time', packages.map((name) => [name])],
];

describe('the documents', () => {
  for (const [page, heading, rows] of tables) {
    it(`have what the program has: ${page}`, () => {
      const width = rows[0]?.length ?? 0;
      const found = tableOf(sectionOf(doc(page), heading)).map((row) =>
        row.slice(0, width).map((cell, at) => (at < 2 ? bare(cell) : cell)),
      );
      // The order counts where a row has more than a name.
      const inOrder = (all: readonly string[][]): string[] => {
        const lines = all.map((row) => row.join(' | '));
        return width === 1 ? lines.toSorted() : lines;
      };
      assert.deepEqual(inOrder(found), inOrder(rows));
    });
  }

  it('show every package in the picture of a request', () => {
    const picture = doc('request.svg');
    for (const name of Object.keys(manifest.dependencies)) {
      assert.ok(picture.includes(`>${name}</text>`), name);
    }
  });

  it('count the packages of the production tree, none of which runs a script', () => {
    const production = Object.entries(lock.packages).filter(([path, entry]) => {
      // The link to the folder that stands in for a package: what it leads to is for development.
      return path !== '' && entry.dev !== true && entry.link !== true;
    });
    assert.equal(production.length, 9);
    assert.match(readme, /\b9 packages\b/);
    assert.ok(production.every(([, entry]) => entry.hasInstallScript !== true));
  });

  it('bound the threats from below, within 10', () => {
    const rows = doc('threats.md').split('\n## ').slice(1).flatMap(tableOf);
    const least = Number(/Over ([\d,]+) threats/.exec(readme)?.[1]);
    assert.ok(rows.length > least && rows.length <= least + 10, `${rows.length} threats`);
    for (const row of rows) assert.match(row.at(-1) ?? '', /`test\/[\w/.-]+\.ts`/);
  });
});

describe('the contract', () => {
  const contract = doc('contract.md');
  const code = textsBelow('src') + textsBelow('test');

  it('has every ruling that the code cites', () => {
    const rulings = new Set(contract.match(/\bR[1-9]\d?a?\b/g));
    const cited = new Set(code.match(/\bR[1-9]\d?a?\b/g));
    assert.deepEqual(
      [...cited].filter((id) => !rulings.has(id)),
      [],
    );
  });

  it('has every section and rule that the code cites', () => {
    for (const [, id = '', rule] of code.matchAll(/Spec §(\d(?:\.\d+a?)?)(?: rule (\d))?/g)) {
      const heading = contract
        .split('\n')
        .find((line) => new RegExp(`^(?:#+ |- \\*\\*)${id}\\.? `).test(line));
      assert.ok(heading, `section ${id}`);
      if (rule === undefined) continue;
      assert.match(sectionOf(contract, heading), new RegExp(`^${rule}\\. `, 'm'), `${id} ${rule}`);
    }
  });
});

describe('the pages', () => {
  const names = 'README.md src/README.md SECURITY.md CHANGELOG.md CONTRIBUTING.md bench/README.md';
  const others = [
    'examples/README.md',
    'test/support/README.md',
    ...docNames.map((n) => `docs/${n}`),
  ];
  const pages = [...names.split(' '), ...others].map((page) => [page, read(page)] as const);

  it('link to files and headings that exist', () => {
    for (const [page, text] of pages) {
      for (const [, file = '', anchor] of text.matchAll(/\]\(([^)#:]*)(?:#([^)]*))?\)/g)) {
        const target = file === '' ? page : join(page, '..', file);
        assert.ok(existsSync(join(projectFolder, target)), `${page}: ${file}`);
        if (anchor === undefined) continue;
        const anchors = Array.from(read(target).matchAll(/^#+ (.+)$/gm), ([, title = '']) =>
          title
            .toLowerCase()
            .replaceAll(/[^\w\- ]/g, '')
            .replaceAll(' ', '-'),
        );
        assert.ok(anchors.includes(anchor), `${page}: ${file}#${anchor}`);
      }
    }
  });

  it('name only tests and scripts that exist', () => {
    for (const [page, text] of pages) {
      for (const [, path = ''] of text.matchAll(/\b(test\/[\w/.-]+\.ts)\b/g)) {
        assert.ok(existsSync(join(projectFolder, path)), `${page}: ${path}`);
      }
      for (const [, name = ''] of text.matchAll(/npm run ([\w:]+)/g)) {
        assert.ok(manifest.scripts[name], `${page}: npm run ${name}`);
      }
    }
  });
});

const mark = '=== end of block ===';

/** All blocks in one shell, as a person would paste them; what each of them printed. */
async function paste(blocks: readonly Block[], folder: string): Promise<string[]> {
  const script = blocks.map((block) => `${block.text}\nprintf '\\n%s\\n' '${mark}'\n`).join('');
  const shell = spawn('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: projectFolder,
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
  });
  const [printed, faults] = await Promise.all([readAll(shell.stdout), readAll(shell.stderr)]);
  const shown = printed.split(`\n${mark}\n`);
  assert.equal(shown.length - 1, blocks.length, `block ${shown.length} fails: ${faults}`);
  return shown.slice(0, -1);
}

/** In what the README states, `…` stands for anything within the line. */
function toPattern(stated: string): RegExp {
  const parts = stated.trim().split('…');
  const exact = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${exact.join('.*')}$`);
}

const sections = [
  { page: 'README.md', heading: '## A query and a live comment', blocksMin: 2 },
  { page: 'docs/tour.md', heading: '## Steps', blocksMin: 6 },
  { page: 'docs/graphql.md', heading: '## Examples', blocksMin: 2 },
];

for (const { page, heading, blocksMin } of sections) {
  test(`the examples of ${page} print what the page shows`, { skip: noShell }, async (context) => {
    const program = await runProgram(context);
    const host = `127.0.0.1:${(await program.listening()).port}`;
    const whole = read(page);
    const blocks = blocksOf(sectionOf(whole, heading).replaceAll('localhost:8080', host));
    const printed = await paste(
      blocks.filter(({ language }) => language === 'sh'),
      program.folder,
    );
    assert.ok(printed.length >= blocksMin, 'the page has its blocks');
    let shown = -1;
    const wrong = blocks.flatMap(({ language, text: stated }) => {
      if (language === 'sh') shown += 1;
      const output = (printed[shown] ?? '').replaceAll('\r', '').trim();
      return language === 'sh' || toPattern(stated).test(output) ? [] : [{ stated, output }];
    });
    assert.deepEqual(wrong, []);
  });
}
