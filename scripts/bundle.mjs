/**
 * Makes one file of the program and its seven packages: `node scripts/bundle.mjs [FILE]`, by default
 * dist/inkwell.mjs. It needs no node_modules; only `pg` is still looked up there, when its
 * store is chosen. The browser pages are read from the folders beside the file, where they are.
 */

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const dist = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const outfile = process.argv[2] ?? join(dist, 'inkwell.mjs');
const { version } = createRequire(import.meta.url)('../package.json');

await build({
  entryPoints: [join(dist, 'server.js')],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  define: { bundledVersion: JSON.stringify(version) },
  legalComments: 'eof',
  // `ws` asks for two accelerators and goes on without them.
  external: ['pg', 'bufferutil', 'utf-8-validate'],
  banner: {
    js: [
      `// Inkwell ${version}. The licences of the packages within are at the end.`,
      // The packages that are CommonJS ask for Node's modules in this way.
      "import { createRequire as createRequireOfBundle } from 'node:module';",
      'const require = createRequireOfBundle(import.meta.url);',
    ].join('\n'),
  },
  logLevel: 'warning',
});
