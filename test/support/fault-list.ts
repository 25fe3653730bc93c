/**
 * Reads test/faults/: faults that a test must notice when one of them is placed in the program.
 * `npm run faults` places them (scripts/faults.mjs). A fault is a block of lines:
 *
 *     # two hundred messages a second become four hundred
 *     promise: docs/settings.md: 200 in a second
 *     file: graphql/ws/session.ts
 *     -messagesPerSecondMax = 200;
 *     +messagesPerSecondMax = 400;
 *     test: graphql/ws-limits.test.ts
 *
 * Lines with `-` are the text of the file, which stands in it exactly once; those with `+` replace
 * it. `test:` names a file below test/, and the text of a test's name where one test is enough;
 * `long:` the same, run at length. `promise:` names the file that promises what the fault breaks,
 * and words that stand there.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { projectFolder } from './source.ts';

export interface NoticingTest {
  /** A file below test/. */
  readonly file: string;
  /** A text that names of tests contain; undefined: all tests of the file. */
  readonly name: string | undefined;
  readonly isLong: boolean;
}

export interface Fault {
  /** The name of its list: a folder of src/, or `root`. */
  readonly room: string;
  readonly name: string;
  /** The file that promises it, and words of the promise. */
  readonly promise: { readonly file: string; readonly words: string | undefined };
  /** A file below src/. */
  readonly file: string;
  readonly text: string;
  readonly replacement: string;
  readonly tests: readonly NoticingTest[];
}

export function readFaults(folder = join(projectFolder, 'test/faults')): readonly Fault[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.diff'))
    .toSorted()
    .flatMap((name) =>
      parseFaults(basename(name, '.diff'), readFileSync(join(folder, name), 'utf8')),
    );
}

/** Throws for a block that is not one. */
export function parseFaults(room: string, text: string): readonly Fault[] {
  return text
    .split(/\n\n+/)
    .filter((block) => block.trim() !== '')
    .map((block) => parseFault(room, block.trim().split('\n')));
}

function parseFault(room: string, lines: readonly string[]): Fault {
  const all = (start: string): readonly string[] =>
    lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
  const one = (start: string): string => {
    const [found, second] = all(start);
    if (found !== undefined && second === undefined) return found;
    throw new Error(
      `test/faults/${room}.diff: one line "${start}" is needed in:\n${lines.join('\n')}`,
    );
  };
  const toTest = (isLong: boolean) => (given: string) => {
    const [file, name] = split(given);
    return { file, name, isLong };
  };
  const [file, words] = split(one('promise: '));
  return {
    room,
    name: one('# '),
    promise: { file, words },
    file: one('file: '),
    text: all('-').join('\n'),
    replacement: all('+').join('\n'),
    tests: [...all('test: ').map(toTest(false)), ...all('long: ').map(toTest(true))],
  };
}

/** At the first colon with a blank. */
function split(text: string): readonly [string, string | undefined] {
  const at = text.indexOf(': ');
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 2)];
}

/** How often a text stands in another. */
export function countIn(text: string, part: string): number {
  return part === '' ? 0 : text.split(part).length - 1;
}
