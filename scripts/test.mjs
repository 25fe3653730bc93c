/**
 * Runs tests that are built: `npm test` all of them but those at length, in nine processes;
 * `npm test -- PATTERN …` the files whose path below test/ contains one of the texts, at length too
 * where only such a file does, each in a process of its own. What begins with `--` goes to
 * `node --test`, such as `--test-name-pattern=cursor`.
 */

import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const built = join(import.meta.dirname, '..', 'dist-test');
const given = process.argv.slice(2);
const flags = given.filter((one) => one.startsWith('--'));
const patterns = given.filter((one) => !one.startsWith('--'));

const files = patterns.length === 0 ? groups() : select();
if (files.length === 0) {
  console.error(`No file in test/ has a path that contains ${patterns.join(' or ')}.`);
  process.exit(1);
}
const isLong = files.every((file) => file.endsWith('.long.js'));
// Up to Node 22 this limits a whole file, which a group is, and from 24 each test.
const shortSeconds = Number.parseInt(process.versions.node, 10) < 24 ? 900 : 120;
const child = spawn(
  process.execPath,
  [
    '--enable-source-maps',
    '--max-semi-space-size=32',
    '--test',
    '--test-concurrency=9',
    `--test-timeout=${(isLong ? 900 : shortSeconds) * 1000}`,
    ...flags,
    ...files,
  ],
  { stdio: 'inherit', env: { ...process.env, ...(isLong && { TEST_LONG: '1' }) } },
);
child.once('exit', (code) => {
  process.exitCode = code ?? 1;
});

function groups() {
  const folder = join(built, 'groups');
  return readdirSync(folder).map((name) => join(folder, name));
}

/** A pattern may name the source, as in `test/router.test.ts`. */
function select() {
  const texts = patterns.map((text) => text.replace(/^(?:\.\/)?test\//, '').replace(/\.ts$/, ''));
  const names = readdirSync(built, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\.(?:test|long)\.js$/.test(name))
    .filter((name) => texts.some((text) => name.replace(/\.js$/, '').includes(text)));
  const short = names.filter((name) => name.endsWith('.test.js'));
  return (short.length > 0 ? short : names).map((name) => join(built, name));
}
