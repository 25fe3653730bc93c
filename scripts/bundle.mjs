/**
 * Makes one file of the program and its seven packages: `node scripts/bundle.mjs [FILE]`, by default
 * dist/inkwell.mjs. It needs no node_modules; only `pg` is still looked up there, when its
 * store is chosen. The browser pages are read from the folders beside the file, where they are.
 */

import { join } from 'node:path';
import { build } from 'esbuild';
import { bundleOptions, dist } from './bundle-options.mjs';
import { createNotices, toComment } from './notices.mjs';

await build({
  ...bundleOptions,
  outfile: process.argv[2] ?? join(dist, 'inkwell.mjs'),
  footer: { js: toComment(createNotices()) },
  external: ['pg', ...bundleOptions.external],
});
