/**
 * Makes the files of a release: `npm run release -- FOLDER`. An archive of the program as one file
 * with its pages, the executable where Node 26 or newer runs this (or EXECUTABLE_NODE names one), a
 * list of packages (SBOM) and the notices of each, and SHA-256 checksums of all. The same commit and packages make
 * the same bytes, but for the executable.
 */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { createNotices } from './notices.mjs';
import { createSbom } from './sbom.mjs';
import { toArchive } from './tar.mjs';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const { version } = createRequire(import.meta.url)('../package.json');
const name = `inkwell-${version}`;

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error('usage: npm run release -- FOLDER');
  process.exit(2);
}
await mkdir(folder, { recursive: true });
if ((await readdir(folder)).length > 0) {
  console.error(`${folder} is not empty: a release has the files of one run only.`);
  process.exit(1);
}

await put(`${name}.tar.gz`, toArchive(await findFiles()));
await put(`${name}.cdx.json`, toJson(createSbom()));
await makeExecutable();
await put('SHA256SUMS', await sumUp());
for (const file of (await readdir(folder)).toSorted()) {
  const { length } = await readFile(join(folder, file));
  console.log(`${(length / 1024).toFixed(0).padStart(8)} KiB  ${file}`);
}

/** What a machine with Node needs, below one folder. */
async function findFiles() {
  const files = {};
  const add = async (path, from) => (files[`${name}/${path}`] = await readFile(from));
  const temporary = await mkdtemp(join(tmpdir(), 'inkwell-release-'));
  try {
    const bundle = join(temporary, 'inkwell.mjs');
    execFileSync(process.execPath, [join(root, 'scripts/bundle.mjs'), bundle]);
    await add('inkwell.mjs', bundle);
  } finally {
    await rm(temporary, { recursive: true });
  }
  for (const page of ['index.html', 'openapi.json']) await add(page, join(dist, page));
  for (const pages of ['graphql-ui', 'reference']) {
    const entries = await readdir(join(dist, pages), { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((one) => one.isFile())) {
      const path = join(entry.parentPath, entry.name);
      await add(relative(dist, path).replaceAll(sep, '/'), path);
    }
  }
  for (const text of ['LICENSE', 'README.md', 'CHANGELOG.md', 'SECURITY.md']) {
    await add(text, join(root, text));
  }
  files[`${name}/THIRD-PARTY-NOTICES`] = Buffer.from(createNotices({ withPages: true }));
  return files;
}

/** It has `pg` inside, so that its list of packages is another one. */
async function makeExecutable() {
  const node = process.env['EXECUTABLE_NODE'] ?? process.execPath;
  const print = ['-p', '`${process.versions.node} ${process.platform}-${process.arch}`'];
  const [nodeVersion = '', machine] = execFileSync(node, print, { encoding: 'utf8' })
    .trim()
    .split(' ');
  if (Number.parseInt(nodeVersion, 10) < 26) {
    console.log(`No executable: Node ${nodeVersion} makes none of ES modules; Node 26 does.`);
    return;
  }
  const file = join(folder, `${name}-${machine}`);
  execFileSync(process.execPath, [join(root, 'scripts/executable.mjs'), node, file]);
  await put(`${name}-${machine}.cdx.json`, toJson(createSbom({ withPg: true })));
  const notices = createNotices({ withPg: true, withPages: true, node });
  await put(`${name}-${machine}.THIRD-PARTY-NOTICES`, notices);
}

/** As `sha256sum --check SHA256SUMS` reads it. */
async function sumUp() {
  const names = (await readdir(folder)).toSorted();
  const lines = names.map(async (file) => {
    const hash = createHash('sha256').update(await readFile(join(folder, file)));
    return `${hash.digest('hex')}  ${file}\n`;
  });
  return (await Promise.all(lines)).join('');
}

function put(file, content) {
  return writeFile(join(folder, file), content);
}

function toJson(value) {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
