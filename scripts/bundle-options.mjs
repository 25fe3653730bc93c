/** How the program and its packages become one file, for `bundle.mjs` and `executable.mjs`. */

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const dist = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const { version } = createRequire(import.meta.url)('../package.json');

export const bundleOptions = {
  entryPoints: [join(dist, 'server.js')],
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  define: { bundledVersion: JSON.stringify(version) },
  // `notices.mjs` has them, and those of packages that have none in their code.
  legalComments: 'none',
  // `ws` asks for two accelerators and goes on without them.
  external: ['bufferutil', 'utf-8-validate'],
  banner: {
    js: [
      `// Inkwell ${version}. The licences of the packages within are at the end.`,
      // The packages that are CommonJS ask for Node's modules in this way.
      "import { createRequire as createRequireOfBundle } from 'node:module';",
      'const require = createRequireOfBundle(import.meta.url);',
    ].join('\n'),
  },
  logLevel: 'warning',
};
