/**
 * Makes one executable of Node, the program, its packages, `pg` and the browser pages, for a machine
 * that has no Node: `node scripts/executable.mjs [NODE [FILE]]`. NODE is the binary that goes into
 * it, of version 26 or newer (default: the one that runs this); FILE is by default dist/inkwell.
 */

import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundleOptions, dist } from './bundle-options.mjs';
import { createNotices, toComment } from './notices.mjs';

const [node = process.execPath, output = join(dist, 'inkwell')] = process.argv.slice(2);
const pageFiles = join(dirname(fileURLToPath(import.meta.url)), 'executable', 'page-files.mjs');

/** The modules that serve pages read them from the executable instead of the disk. */
const pagesInside = {
  name: 'pages inside',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^node:fs(\/promises)?$/ }, ({ importer }) =>
      /(handlers\/pages|http\/static-files)\.js$/.test(importer.replaceAll(sep, '/'))
        ? { path: pageFiles }
        : undefined,
    ),
};

/** Each file of a page by its path in dist/, with `/` between folders. */
async function findPages() {
  const paths = [join(dist, 'index.html'), join(dist, 'openapi.json')];
  for (const folder of ['graphql-ui', 'reference']) {
    const entries = await readdir(join(dist, folder), { recursive: true, withFileTypes: true });
    for (const entry of entries) if (entry.isFile()) paths.push(join(entry.parentPath, entry.name));
  }
  return Object.fromEntries(paths.map((path) => [relative(dist, path).replaceAll(sep, '/'), path]));
}

const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
if (Number.parseInt(version.slice(1), 10) < 26) {
  console.error(`Node ${version} makes no executable of ES modules: give the path of Node 26.`);
  process.exit(1);
}
const folder = await mkdtemp(join(tmpdir(), 'inkwell-executable-'));
try {
  const main = join(folder, 'inkwell.mjs');
  const external = ['pg-native', 'node:sea', ...bundleOptions.external];
  const notices = toComment(createNotices({ withPg: true, withPages: true, node }));
  const footer = { js: notices };
  await build({ ...bundleOptions, outfile: main, external, footer, plugins: [pagesInside] });
  const settings = {
    main,
    mainFormat: 'module',
    output,
    assets: await findPages(),
    // Compiling anew would take a fifth of the start.
    useCodeCache: true,
    disableExperimentalSEAWarning: true,
  };
  const file = join(folder, 'settings.json');
  await writeFile(file, JSON.stringify(settings));
  execFileSync(node, ['--build-sea', file], { stdio: ['ignore', 'ignore', 'inherit'] });
} finally {
  await rm(folder, { recursive: true });
}
console.log(`${output}: Node ${version} with the program and its pages`);
