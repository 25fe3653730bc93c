/**
 * The prober in a process of its own: for tests that keep their own thread busy, so that what is
 * timed is the service, in its process, and not the test.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Prober, startProber } from './prober.js';

/** Ends with the test, also with one that fails. */
export function startProberProcess(
  context: { after(end: () => void): unknown },
  url: string,
): Prober {
  const child = fork(fileURLToPath(import.meta.url), [url]);
  context.after(() => child.kill());
  return {
    async stop() {
      child.send('stop');
      const [longest] = (await once(child, 'message')) as [number];
      child.disconnect();
      await once(child, 'exit');
      return longest;
    },
  };
}

/** When this file is the program. */
async function probe(url: string): Promise<void> {
  const prober = startProber(url);
  await once(process, 'message');
  const longest = await prober.stop();
  process.send?.(Number.isFinite(longest) ? longest : Number.MAX_VALUE);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await probe(process.argv[2] ?? '');
