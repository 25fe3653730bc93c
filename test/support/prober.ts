/**
 * Is the service still there for others? In `npm run test:long` a process beside the test calls
 * `/hello` all the while, and no response may take longer than some seconds, but for what the machine
 * itself has taken.
 */

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { after, before } from 'node:test';
import { type Announcement, announcements, clock } from './announce.js';
import { isLong } from './long.js';
import { type Gap, type Order, proberProgram } from './prober-process.js';
import type { Ending } from './server.js';

/** Many times what a quiet machine shows: a machine with other work is no fault of the service. */
const gapMilliseconds = 3_000;

export interface Prober {
  /** Ends the calls. */
  stop(): Promise<Gap>;
}

export interface Probed {
  /** Without a slash at its end. */
  readonly url: string;
  readonly pid?: number | undefined;
}

/** For one window within a test. Ends with the test, also with one that fails. */
export async function startProber(
  context: Ending,
  { url, pid = process.pid }: Probed,
): Promise<Prober> {
  const probing = await startProbing();
  context.after(() => probing.end());
  probing.tell({ kind: 'up', url, pid, name: url });
  return {
    stop() {
      probing.tell({ kind: 'down', url, at: clock() });
      return probing.report();
    },
  };
}

type End = () => Promise<void>;

/**
 * For a whole file of hostile tests: one line of it, which `npm run test:long` alone obeys. Every
 * server that a test starts is called until it is stopped; the file fails where others had to wait
 * for one. Tests of a part alone hand in `startServer`: then a whole service runs in their process,
 * on the thread that they use.
 */
export function keepOthersServed(
  startBeside: (context: Ending) => Promise<unknown> = async () => undefined,
): void {
  if (!isLong) return;
  const ends: End[] = [];
  let probing: Probing | undefined;
  let servers = 0;
  const tell = (announcement: unknown): void => {
    servers += 1;
    probing?.tell(announcement as Announcement);
  };
  before(async () => {
    probing = await startProbing();
    announcements.subscribe(tell);
    await startBeside({ after: (end) => ends.push(end) });
  });
  after(async () => {
    for (const end of ends) await end();
    announcements.unsubscribe(tell);
    const gap = await probing?.report();
    await probing?.end();
    assert.ok(gap !== undefined && (gap.calls > 0 || servers === 0), 'no server was called');
    assertServed(gap);
  });
}

export function assertServed(gap: Gap): void {
  assert.ok(gap.own < gapMilliseconds, `/hello of ${gap.name}: ${describeGap(gap)}`);
}

export function describeGap({ waited, own }: Gap): string {
  return `at most ${own.toFixed()} ms (${waited.toFixed()} by the clock)`;
}

interface Probing {
  tell(order: Order): void;
  report(): Promise<Gap>;
  end(): Promise<void>;
}

async function startProbing(): Promise<Probing> {
  // Infinity is nothing that JSON has.
  const child = fork(proberProgram, { serialization: 'advanced', execArgv: [] });
  const exited = once(child, 'exit');
  await once(child, 'message');
  const asking: ((gap: Gap) => void)[] = [];
  child.on('message', (gap: Gap) => asking.shift()?.(gap));
  const tell = (order: Order): void => {
    if (child.connected) child.send(order);
  };
  return {
    tell,
    report() {
      assert.ok(child.connected, 'the prober has ended');
      tell({ kind: 'report' });
      return new Promise((resolve) => asking.push(resolve));
    },
    async end() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
