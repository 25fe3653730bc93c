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

export function readFaults(folder = join(import.meta.dirname, '..', 'test', 'faults')) {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.diff'))
    .toSorted()
    .flatMap((name) =>
      parseFaults(basename(name, '.diff'), readFileSync(join(folder, name), 'utf8')),
    );
}

/** Throws for a block that is not one. */
function parseFaults(room, text) {
  return text
    .split(/\n\n+/)
    .filter((block) => block.trim() !== '')
    .map((block) => parseFault(room, block.trim().split('\n')));
}

function parseFault(room, lines) {
  const all = (start) =>
    lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
  const one = (start) => {
    const [found, second] = all(start);
    if (found !== undefined && second === undefined) return found;
    throw new Error(
      `test/faults/${room}.diff: one line "${start}" is needed in:\n${lines.join('\n')}`,
    );
  };
  const toTest = (isLong) => (given) => {
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
function split(text) {
  const at = text.indexOf(': ');
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 2)];
}

/** How often a text stands in another. */
export function countIn(text, part) {
  return part === '' ? 0 : text.split(part).length - 1;
}
