/**
 * Reads test/faults/: faults that a test must notice when one of them is placed in the program.
 * `npm run faults` places them (scripts/faults.mjs). They stand below the file of src/ in which they
 * are placed; each begins with its name, and with the file that promises what it breaks:
 *
 *     == graphql/ws/session.ts
 *     # two hundred messages a second become four hundred (docs/settings.md)
 *     -messagesPerSecondMax = 200;
 *     +messagesPerSecondMax = 400;
 *     test: graphql/ws-limits.test.ts
 *
 * Lines with `-` are the text of the file, which stands in it exactly once; those with `+` replace
 * it. `test:` names a file below test/, and the text of a test's name where one test is enough;
 * `long:` the same, run at length.
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

function parseFaults(room, text) {
  return text.split(/^== /m).flatMap((section) => {
    const [file, ...blocks] = section.split(/\n+(?=# |$)/).filter((block) => block !== '');
    return blocks.map((block) => parseFault(room, file, block.split('\n')));
  });
}

/** Throws for a block that is not one. */
function parseFault(room, file, [title, ...lines]) {
  const all = (start) =>
    lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length));
  const toTest = (isLong) => (given) => {
    const [test, name] = split(given);
    return { file: test, name, isLong };
  };
  const [, name, promise] = /^# (.*) \((.*)\)$/.exec(title) ?? [];
  const fault = {
    room,
    name,
    promise,
    file,
    text: all('-').join('\n'),
    replacement: all('+').join('\n'),
    tests: [...all('test: ').map(toTest(false)), ...all('long: ').map(toTest(true))],
  };
  if (name !== undefined && fault.text !== '' && fault.tests.length > 0) return fault;
  throw new Error(`test/faults/${room}.diff: this is no fault of ${file}:\n${title}`);
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
