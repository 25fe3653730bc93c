/**
 * Places the faults of test/faults/ in a copy of the program, one at a time, and runs the tests that
 * must notice them: `npm run faults` all, `npm run faults -- PATTERN …` those whose room, file or
 * name contains one of the texts. Prints what noticed each, and ends with 1 if fewer than nine of ten
 * are noticed, or if one is noticed by nothing but a time limit. Needs what `npm test` has built.
 *
 *     --jobs=2          so many at the same time
 *     --json=FILE       writes the results as JSON too
 *     --faults=FOLDER   another list
 */

import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { transform } from 'esbuild';
import { countIn, readFaults } from './fault-list.mjs';
import { toBuiltImports } from './built-imports.mjs';

const project = join(import.meta.dirname, '..');
/** The limits for a test, and for all tests of a row: a hang is none of the ways to notice a fault. */
const seconds = { short: { test: 60, all: 180 }, long: { test: 240, all: 480 } };
const share = 0.9;

const given = process.argv.slice(2);
const option = (name, other) =>
  given.find((one) => one.startsWith(`--${name}=`))?.slice(name.length + 3) ?? other;
const patterns = given.filter((one) => !one.startsWith('--'));
const faults = readFaults(option('faults')).filter(({ room, file, name }) => {
  const text = `${room} ${file} ${name}`;
  return patterns.length === 0 || patterns.some((pattern) => text.includes(pattern));
});
if (faults.length === 0) {
  console.error(`No fault of test/faults/ has ${patterns.join(' or ')} in its room, file or name.`);
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'inkwell-faults-'));
/** Ends the tests that run. */
const running = new Set();
process.once('exit', () => {
  for (const stop of running) stop();
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const left = [...faults];
const results = [];
/** Whether tests pass without a fault, by the tests. */
const baseline = new Map();
const jobs = Math.max(1, Math.min(Number(option('jobs', '2')), faults.length));
await Promise.all(Array.from({ length: jobs }, (_, at) => placeAll(join(folder, String(at)))));
process.exitCode = printSum() ? 0 : 1;

async function placeAll(copy) {
  const others = ['.git', 'node_modules', 'coverage'];
  cpSync(project, copy, { recursive: true, filter: (path) => !others.includes(basename(path)) });
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'));
  for (let fault = left.shift(); fault !== undefined; fault = left.shift()) {
    const startedAt = performance.now();
    const found = await place(fault, copy);
    const took = Math.round((performance.now() - startedAt) / 100) / 10;
    results.push({ ...fault, ...found, seconds: took });
    print(fault, found, took);
  }
}

/** Returns what noticed the fault: `kind` is that of the reporter, or `lived`. */
async function place(fault, copy) {
  const source = readFileSync(join(project, 'src', fault.file), 'utf8');
  if (countIn(source, fault.text) !== 1) return { kind: 'not placed' };
  const built = join('dist', fault.file.replace(/\.ts$/, '.js'));
  const faulty = source.replace(fault.text, () => fault.replacement);
  writeFileSync(join(copy, built), await compile(faulty));
  let late;
  try {
    for (const test of fault.tests) {
      const ended = await runTests(test, copy);
      late ??= ended.find(({ kind }) => kind === 'time limit');
      const noticed = ended.find(({ kind }) => !['passed', 'time limit'].includes(kind));
      if (noticed === undefined) continue;
      writeFileSync(join(copy, built), readFileSync(join(project, built)));
      if (!(await passes(test, copy))) return { kind: 'fails without it', test, by: noticed.name };
      return { kind: noticed.kind, test, by: noticed.name, reason: noticed.reason };
    }
  } finally {
    writeFileSync(join(copy, built), readFileSync(join(project, built)));
  }
  return late === undefined ? { kind: 'lived' } : { kind: 'time limit', by: late.name };
}

async function compile(text) {
  const { code } = await transform(text, {
    loader: 'ts',
    target: 'es2023',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  });
  return toBuiltImports(code);
}

function passes(test, copy) {
  const key = JSON.stringify(test);
  if (!baseline.has(key)) {
    const check = async () => {
      const ended = await runTests(test, copy);
      return ended.length > 0 && ended.every(({ kind }) => kind === 'passed');
    };
    baseline.set(key, check());
  }
  return baseline.get(key);
}

/** Runs the tests of a file up to the first that fails. Returns those that ended. */
function runTests({ file, name, isLong }, copy) {
  const limits = isLong ? seconds.long : seconds.short;
  const path = join('dist-test', file.replace(/\.ts$/, '.js'));
  const pattern = name?.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  const args = [
    '--enable-source-maps',
    '--test',
    `--test-reporter=${join(project, 'scripts', 'faults-reporter.mjs')}`,
    `--test-timeout=${limits.test * 1000}`,
    ...(pattern === undefined ? [] : [`--test-name-pattern=${pattern}`]),
    path,
  ];
  return new Promise((resolve) => {
    const env = { ...process.env, ...(isLong && { TEST_LONG: '1' }), NODE_TEST_CONTEXT: undefined };
    // A group of its own, so that what a test has started ends with it.
    const stdio = ['ignore', 'pipe', 'ignore'];
    const child = spawn(process.execPath, args, { cwd: copy, env, stdio, detached: true });
    const ended = [];
    const stop = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    };
    running.add(stop);
    const timer = setTimeout(() => {
      ended.push({ name: file, kind: 'time limit' });
      stop();
    }, limits.all * 1000);
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith('{')) return;
      const test = JSON.parse(line);
      ended.push(test);
      if (test.kind !== 'passed' && test.kind !== 'time limit') stop();
    });
    child.once('close', () => {
      clearTimeout(timer);
      stop();
      running.delete(stop);
      resolve(ended);
    });
  });
}

function print(fault, { kind, by, test, reason }, took) {
  const noticed = by === undefined ? '' : ` ${test?.file ?? ''}: ${by}`;
  const why = kind === 'error' || kind === 'end of the process' ? ` (${reason})` : '';
  console.log(
    `${fault.room} | ${fault.name} | ${fault.file} | ${kind}${noticed}${why} | ${took} s`,
  );
}

/** Returns whether enough are noticed. */
function printSum() {
  const isNoticed = ({ kind }) => ['assertion', 'error', 'end of the process'].includes(kind);
  const rooms = [...new Set(faults.map(({ room }) => room))];
  console.log(
    '\n| Room | Placed | Noticed | Lived | By a time limit alone |\n| - | - | - | - | - |',
  );
  for (const room of [...rooms, 'all']) {
    const own = results.filter((result) => room === 'all' || result.room === room);
    const count = (kind) => own.filter((result) => result.kind === kind).length;
    const noticed = own.filter(isNoticed).length;
    console.log(
      `| ${room} | ${own.length} | ${noticed} | ${count('lived')} | ${count('time limit')} |`,
    );
  }
  for (const { kind, name, file } of results) {
    if (kind === 'not placed' || kind === 'fails without it')
      console.error(`${kind}: ${name} (${file})`);
  }
  const json = option('json');
  if (json !== undefined) writeFileSync(json, JSON.stringify(results, undefined, 1));
  const isLate = results.some(({ kind }) => kind === 'time limit');
  return results.filter(isNoticed).length >= share * faults.length && !isLate;
}
