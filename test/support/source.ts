/** Reads src/ as text, for the tests that hold the house to its plan. */

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { posix, sep } from 'node:path';

export const projectFolder = join(import.meta.dirname, '..', '..');
const sourceFolder = join(projectFolder, 'src');

export interface Import {
  /** `types`: gone at run time. */
  readonly kind: 'value' | 'types';
  /** A file below src/ for one of this project, else the package or `node:` module. */
  readonly from: string;
  readonly own: boolean;
}

export interface SourceFile {
  /** Path below src/, with forward slashes. */
  readonly path: string;
  /** The first folder, or the file's own name without its ending. */
  readonly room: string;
  readonly lines: readonly string[];
  /** Without comments. */
  readonly code: string;
  readonly imports: readonly Import[];
}

export function readSources(): readonly SourceFile[] {
  return readdirSync(sourceFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(sourceFolder, join(entry.parentPath, entry.name)))
    .map((path) => path.replaceAll(sep, '/'))
    .toSorted((a, b) => a.localeCompare(b))
    .map((path) => toSourceFile(path, readFileSync(join(sourceFolder, path), 'utf8')));
}

export function toSourceFile(path: string, text: string): SourceFile {
  const lines = text.replace(/\n$/, '').split('\n');
  const code = withoutComments(lines);
  return { path, room: roomOf(path), lines, code, imports: importsOf(path, code) };
}

function roomOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path.replace(/\.ts$/, '');
}

/** Prettier's layout makes whole-line comments and ` // …` at the end the only ones there are. */
function withoutComments(lines: readonly string[]): string {
  return lines
    .filter((line) => !/^\s*(?:\/\/|\/\*|\*)/.test(line))
    .map((line) => line.replace(/ \/\/ .*$/, ''))
    .join('\n');
}

const statement = /^(?:import|export) (type )?(?:[\w*{}\s,]*? from )?'([^']+)';$/gm;
const call = /\b(?:import|require)\('([^']+)'\)/g;

function importsOf(path: string, code: string): readonly Import[] {
  const found: Import[] = [];
  for (const [, type, from = ''] of code.matchAll(statement)) {
    found.push(toImport(path, type === undefined ? 'value' : 'types', from));
  }
  for (const [, from = ''] of code.matchAll(call)) found.push(toImport(path, 'value', from));
  return found;
}

function toImport(path: string, kind: Import['kind'], from: string): Import {
  if (from.startsWith('.')) {
    return { kind, from: posix.join(posix.dirname(path), from), own: true };
  }
  const words = from.split('/');
  const name = from.startsWith('@') ? words.slice(0, 2).join('/') : (words[0] ?? from);
  return { kind, from: from.startsWith('node:') ? from : name, own: false };
}

/** The first way from a file back to itself, type imports included. */
export function findCycle(byPath: ReadonlyMap<string, SourceFile>): readonly string[] | undefined {
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
    if (done.has(path)) return undefined;
    for (const { own, from } of byPath.get(path)?.imports ?? []) {
      const cycle = own ? visit(from, [...way, path]) : undefined;
      if (cycle !== undefined) return cycle;
    }
    done.add(path);
    return undefined;
  };
  for (const path of byPath.keys()) {
    const cycle = visit(path, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
