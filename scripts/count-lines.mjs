/**
 * Counts lines of code, without blank lines and comments: `node scripts/count-lines.mjs` prints those of
 * src/, and those of its core. The core is what a process loads that keeps its records in memory:
 * all that src/server.ts imports, at once or later, but for databases and commands.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const source = join(import.meta.dirname, '..', 'src');
const notCore = /^(?:commands|store\/(?:sql|sqlite|postgres))\//;

/** A text, a template or a comment, whichever begins first. */
const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\/.*|\/\*[^]*?\*\//g;

/** An import or export from a file of this program that is not of types alone. */
const reference =
  /(?:^|\n)(?:import|export)\s+(?!type\b)(?:(\{[^}]*\}|[^'";{]*)\s*from\s*)?'(\.[^']+)'|import\('(\.[^']+)'\)/g;

function withoutComments(text) {
  return text.replaceAll(token, (found) =>
    found.startsWith('/') ? found.replaceAll(/[^\n]/g, '') : found,
  );
}

function countLines(path) {
  const lines = withoutComments(readFileSync(path, 'utf8')).split('\n');
  return lines.filter((line) => line.trim() !== '').length;
}

function importsOf(path) {
  const text = withoutComments(readFileSync(path, 'utf8'));
  return Array.from(text.matchAll(reference))
    .filter(([, names = '']) => !/^\{(?:\s*type\s[^,}]*,?)+\s*\}$/.test(names))
    .map(([, , atOnce, later]) => join(dirname(path), atOnce ?? later));
}

/** The lines of every file in src/. */
export function countSource() {
  const names = readdirSync(source, { recursive: true }).filter((name) => name.endsWith('.ts'));
  return names.reduce((sum, name) => sum + countLines(join(source, name)), 0);
}

export function countCore() {
  const found = new Set([join(source, 'server.ts')]);
  for (const path of found) {
    for (const next of importsOf(path)) {
      if (!notCore.test(relative(source, next).replaceAll('\\', '/'))) found.add(next);
    }
  }
  return Array.from(found).reduce((sum, path) => sum + countLines(path), 0);
}

if (process.argv[1] === import.meta.filename) {
  console.log(`${countSource()} lines of code, of which ${countCore()} are the core`);
}
