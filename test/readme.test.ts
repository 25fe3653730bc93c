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
const map = read('src/README.md');
const security = read('SECURITY.md');
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

/** The first cells of each row of the table under a heading of a page. */
function firstCells(page: string, heading: string, count: number): string[][] {
  return tableOf(sectionOf(page, heading)).map((row) => row.slice(0, count).map(bare));
}

/** Every TypeScript file below a folder, as one text. */
function textsBelow(folder: string): string {
  return readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => read(join(folder, name)))
    .join('\n');
}

describe('the tables of the documents', () => {
  it('lists the routes of the program, in their order', () => {
    const methods = new Map<string, string[]>();
    for (const { method, path } of routes) {
      methods.set(path, [...(methods.get(path) ?? []), method]);
    }
    const found = firstCells(doc('contract.md'), '## 4. Routes', 2);
    assert.deepEqual(
      found,
      [...methods].map(([path, names]) => [path, names.join(', ')]),
    );
  });

  it('lists the settings with their defaults, units and meanings', () => {
    assert.deepEqual(
      tableOf(sectionOf(doc('settings.md'), '## Table of settings')).map(
        ([name = '', fallback = '', ...rest]) => [bare(name), bare(fallback), ...rest],
      ),
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
      firstCells(doc('errors.md'), '## Error codes', 2),
      Object.entries(httpStatusOf).map(([code, status]) => [code, String(status)]),
    );
  });

  it('lists the codes of GraphQL errors', () => {
    assert.deepEqual(
      firstCells(doc('graphql.md'), '### Codes and their statuses', 1).flat().toSorted(),
      graphqlCodes.toSorted(),
    );
  });

  it('lists the packages', () => {
    const named = (heading: string): string[] =>
      firstCells(doc('development.md'), heading, 1).flat().toSorted();
    const found = named('## Packages at run time');
    assert.deepEqual(found, Object.keys(manifest.dependencies).toSorted());
  });

  it('shows every package in the picture of a request', () => {
    const picture = doc('request.svg');
    for (const name of Object.keys(manifest.dependencies)) {
      assert.ok(picture.includes(`>${name}</text>`), name);
    }
  });

  it('counts the packages of the production tree, none of which runs a script', () => {
    const production = Object.entries(lock.packages).filter(([path, entry]) => {
      // The link to the folder that stands in for a package: what it leads to is for development.
      return path !== '' && entry.dev !== true && entry.link !== true;
    });
    assert.equal(production.length, 9);
    assert.match(readme, /\b9 packages\b/);
    assert.ok(production.every(([, entry]) => entry.hasInstallScript !== true));
  });

  it('names only scripts that exist', () => {
    const others = ['CONTRIBUTING.md', 'bench/README.md'].map(read);
    const text = [readme, ...others, ...docNames.map(doc)].join('\n');
    for (const [, name = ''] of text.matchAll(/npm run ([\w:]+)/g)) {
      assert.ok(manifest.scripts[name], `npm run ${name}`);
    }
  });
});

describe('the figures of the README', () => {
  /** The claim as the README writes it, such as 12,000. */
  const claimed = (pattern: RegExp): number =>
    Number(pattern.exec(readme)?.[1]?.replaceAll(',', ''));

  it('bound the threats from below, within 10', () => {
    const tables = doc('threats.md').split('\n## ').slice(1);
    const rows = tables.flatMap(tableOf);
    const least = claimed(/Over ([\d,]+) threats/);
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
  const pages: Record<string, string> = {
    'README.md': readme,
    'src/README.md': map,
    'SECURITY.md': security,
    'CHANGELOG.md': read('CHANGELOG.md'),
    ...Object.fromEntries(
      ['CONTRIBUTING.md', 'bench/README.md', 'examples/README.md', 'test/support/README.md'].map(
        (name) => [name, read(name)],
      ),
    ),
    ...Object.fromEntries(docNames.map((name) => [`docs/${name}`, doc(name)])),
  };

  it('link to headings that exist', () => {
    const anchors = (text: string): string[] =>
      [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
        title
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, '')
          .replaceAll(' ', '-'),
      );
    for (const [page, text] of Object.entries(pages)) {
      for (const [, file = '', anchor = ''] of text.matchAll(/\]\(([^)#:]*)#([^)]*)\)/g)) {
        const target = file === '' ? page : join(page, '..', file);
        assert.ok(anchors(read(target)).includes(anchor), `${page}: ${file}#${anchor}`);
      }
    }
  });

  it('link to files that exist', () => {
    for (const [page, text] of Object.entries(pages)) {
      for (const [, target = ''] of text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
        assert.ok(existsSync(join(projectFolder, page, '..', target)), `${page}: ${target}`);
      }
    }
  });

  it('name only tests that exist', () => {
    for (const [page, text] of Object.entries(pages)) {
      for (const [, path = ''] of text.matchAll(/\b(test\/[\w/.-]+\.ts)\b/g)) {
        assert.ok(existsSync(join(projectFolder, path)), `${page}: ${path}`);
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
