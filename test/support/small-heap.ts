/** Runs what must fit into little memory: a process whose heap has a limit ends when it is over. */

import { spawnSync } from 'node:child_process';
import { extname } from 'node:path';

/** What a process prints that runs `script` (an ES module; `gc` is there) within `heapMiB`. */
export function runInHeap(heapMiB: number, script: string): string {
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ['--expose-gc', `--max-old-space-size=${heapMiB}`, '--input-type=module', '-e', script],
    { encoding: 'utf8', maxBuffer: 1024 * 1024 },
  );
  if (status === 0) return stdout;
  const why = /FATAL ERROR.*/.exec(stderr)?.[0] ?? stderr.slice(-2_000);
  throw new Error(`it ended with ${signal ?? String(status)}: ${why}`);
}

/** The address of a built module, for an import in such a script. */
export function distUrl(path: string): string {
  return new URL(`../../dist/${path}`, import.meta.url).href;
}

/** The address of a file of this folder, for the same: its source if this runs from the source. */
export function supportUrl(name: string): string {
  return new URL(`${name}${extname(import.meta.url)}`, import.meta.url).href;
}
