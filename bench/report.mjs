/**
 * The options and the tables of a bench. Every bench prints Markdown tables and takes `--json FILE`,
 * into which it writes the same figures with the machine, the commit and the versions.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const root = join(import.meta.dirname, '..');

/**
 * The options of the command line. The default of an option says what it is: a number, a text, or a
 * flag.
 *
 * @template {Record<string, number | string | boolean>} Options
 * @param {Options} defaults
 * @returns {{ options: { [Name in keyof Options]: Options[Name] extends number ? number : Options[Name] extends string ? string : boolean }, report: ReturnType<typeof createReport> }}
 */
export function begin(defaults) {
  /** @type {Record<string, { type: 'string' | 'boolean' }>} */
  const config = { json: { type: 'string' } };
  for (const [name, value] of Object.entries(defaults)) {
    config[name] = { type: typeof value === 'boolean' ? 'boolean' : 'string' };
  }
  const { values } = parseArgs({ options: config });
  const { json, ...given } = values;
  /** @type {any} */
  const options = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    options[name] = typeof defaults[name] === 'number' ? Number(value) : value;
    if (Number.isNaN(options[name])) throw new Error(`--${name} has to be a number`);
  }
  return { options, report: createReport(options, typeof json === 'string' ? json : undefined) };
}

function createReport(options, file) {
  /** @type {{ title: string, head: readonly string[], rows: (string | number | null)[][] }[]} */
  const tables = [];
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    platform: `${process.platform} ${process.arch}`,
  };
  const print = (cells) => console.log(`| ${cells.join(' | ')} |`);
  console.log(`Node ${process.version}, ${machine.platform}, ${machine.cpus} × ${machine.cpu}`);
  return {
    /**
     * Prints the head of a table. Returns a function that prints a row and keeps its cells: texts,
     * numbers with so many decimals, and null where there is nothing to measure.
     *
     * @param {string} title
     * @param {readonly string[]} head
     */
    table(title, head, decimals = 2) {
      /** @type {(string | number | null)[][]} */
      const rows = [];
      tables.push({ title, head, rows });
      console.log(`\n${title}\n`);
      print(head);
      print(head.map((_, at) => (at === 0 ? '---' : '---:')));
      return (/** @type {(string | number | null)[]} */ ...cells) => {
        if (cells.length !== head.length) throw new Error(`${title}: ${cells.length} cells`);
        rows.push(cells.map((cell) => (typeof cell === 'number' ? round(cell, decimals) : cell)));
        print(cells.map((cell) => toText(cell, decimals)));
      };
    },

    /** Writes the figures, once all of them are there. `more`: versions of what was measured. */
    end(more = {}) {
      if (file === undefined) return;
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
      const versions = { inkwell: version, node: process.versions.node, ...more };
      const [date] = new Date().toISOString().split('T');
      const written = { date, commit: findCommit(), machine, versions, options, tables };
      writeFileSync(file, `${JSON.stringify(written, undefined, 2)}\n`);
    },
  };
}

function toText(cell, decimals) {
  if (typeof cell !== 'number') return cell ?? '';
  return Number.isInteger(cell) ? String(cell) : cell.toFixed(decimals);
}

function round(figure, decimals) {
  return Number.isFinite(figure) ? Number(figure.toFixed(decimals)) : null;
}

/** The commit that was measured; `+` where files differ from it. Null outside a clone. */
function findCommit() {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
    return git('rev-parse', '--short=12', 'HEAD').trim() + (isChanged ? '+' : '');
  } catch {
    return null;
  }
}
