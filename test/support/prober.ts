/**
 * Is the service still quick for others? A process beside the test calls `/hello` all the while,
 * and no answer may take longer than half a second, but for what the machine itself has taken.
 */

import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before } from 'node:test';
import { type Announcement, announcements, clock } from './announce.js';
import { type Gap, type Order, proberProgram } from './prober-process.js';

export const gapMilliseconds = 500;

/** Of a file of tests, until a gap counts. */
const runsMax = 3;
/** Which run of the file this is, from 1, in the environment. */
const runName = 'PROBER_RUN';

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
  context: { after(end: () => Promise<void>): unknown },
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
 * For a whole file of hostile tests: one line of it. Every server that a test starts is called
 * until it is stopped; the file fails where others had to wait for one. Tests of a part alone hand
 * in `startServer`: then a whole service runs in their process, on the thread that they use.
 */
export function keepOthersServed(
  startBeside: (context: { after(end: End): unknown }) => Promise<unknown> = async () => undefined,
): void {
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
    await assertQuickAgain(gap);
  });
}

export function assertQuick(gap: Gap): void {
  assert.ok(gap.own < gapMilliseconds, `/hello of ${gap.name}: ${describeGap(gap)}`);
}

/**
 * Where the gap was too long, the file of tests that runs is run again, up to twice. What the
 * service does to others, it does every time; what others on the same hardware do to it, which no
 * process can see, does not come three times.
 */
export async function assertQuickAgain(gap: Gap): Promise<void> {
  const run = Number(process.env[runName] ?? 1);
  const [program, file] = process.argv;
  if (gap.own < gapMilliseconds || run === runsMax || file === undefined) {
    assertQuick(gap);
    return;
  }
  const env: NodeJS.ProcessEnv = { ...process.env, [runName]: String(run + 1) };
  // By which the runner of tests would take the other run for a part of this one.
  delete env['NODE_TEST_CONTEXT'];
  const again = spawn(program ?? 'node', [...process.execArgv, file], { env, stdio: 'ignore' });
  const [code] = (await once(again, 'exit')) as [number | null];
  if (code !== 0) assertQuick(gap);
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
