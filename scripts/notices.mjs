/**
 * The notices of what the program contains, out of node_modules: `node scripts/notices.mjs` prints
 * those of the bundle, `--pg` those of the driver for PostgreSQL too, `--pages` those of the browser
 * pages. The same packages make the same bytes. A package without a notice ends it with an error.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createSbom } from './sbom.mjs';

const modules = join(import.meta.dirname, '..', 'node_modules');
const line = '='.repeat(80);

/** Files of the notices of others that the two pages contain. */
const pages = {
  'altair-static': ['LICENSE', 'build/dist/3rdpartylicenses.txt'],
  'swagger-ui-dist': ['LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt'],
};

/**
 * `node`: the binary that is inside too, if one is.
 * @param {{ withPg?: boolean, withPages?: boolean, node?: string }} [options]
 */
export function createNotices({ withPg = false, withPages = false, node } = {}) {
  const found = createSbom({ withPg }).components.map(({ name, version }) => ({
    title: `${name} ${version}`,
    texts: readNotices(name, version),
  }));
  if (withPages) {
    for (const [name, files] of Object.entries(pages)) {
      const paths = files.map((file) => join(modules, name, file)).filter(existsSync);
      found.push({ title: `${name} ${versionOf(name)}`, texts: paths.map(read) });
    }
  }
  if (node !== undefined) found.push({ title: 'Node.js', texts: [readNodeNotice(node)] });
  const parts = found.map(({ title, texts }) => [line, title, '', ...texts].join('\n'));
  return `Inkwell contains the following, each under its own licence.\n\n${parts.join('\n\n')}\n`;
}

/** As a comment of JavaScript. */
export function toComment(notices) {
  return `/*\n${notices.replaceAll('*/', '* /')}*/`;
}

function readNotices(name, version) {
  if (versionOf(name) !== version) throw new Error(`node_modules has another version of ${name}.`);
  const folder = join(modules, name);
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file));
  if (files.length > 0) return files.toSorted().map((file) => read(join(folder, file)));
  // Two packages have it at the end of their README.
  const [, notice] = /^#+ *licen[cs]e\s+(.*)/ims.exec(read(join(folder, 'README.md'))) ?? [];
  if (notice === undefined) throw new Error(`The package ${name} has no notice.`);
  return [notice.trim()];
}

/** Archives and packages of Node have it in the folder above that of the binary. */
function readNodeNotice(node) {
  const places = ['LICENSE', 'share/doc/nodejs/copyright'].map((file) =>
    join(dirname(dirname(node)), file),
  );
  const place = places.find(existsSync);
  return place === undefined ? 'https://github.com/nodejs/node/blob/main/LICENSE' : read(place);
}

function versionOf(name) {
  return JSON.parse(read(join(modules, name, 'package.json'))).version;
}

function read(path) {
  return readFileSync(path, 'utf8').trim();
}

if (process.argv[1] === import.meta.filename) {
  const [withPg, withPages] = ['--pg', '--pages'].map((name) => process.argv.includes(name));
  process.stdout.write(createNotices({ withPg, withPages }));
}
