/**
 * Is the service still there for others? In `npm run test:long` `/hello` of each server is called
 * every 50 ms all the while, and no response may take longer than some seconds. The machine is
 * others' as well: the time for which it let a server wait for a processor is not the service's.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { after, before } from 'node:test';
import { type Announcement, announcements } from './announce.ts';
import { isLong } from './long.ts';
import type { Ending } from './server.ts';

/** Many times what a quiet machine shows: a machine with other work is no fault of the service. */
const gapMilliseconds = 3_000;
const everyMilliseconds = 50;

/** The longest time from a call to its response; endless where none came. */
export interface Gap {
  /** Milliseconds by the clock. */
  readonly waited: number;
  /** The longest without what the machine has taken: in which the server was not at fault. */
  readonly own: number;
  /** Whose that longest one was. */
  readonly name: string;
  /** How many were answered. */
  readonly calls: number;
}

interface Probed {
  /** Without a slash at its end. */
  readonly url: string;
  readonly pid?: number | undefined;
  readonly name?: string;
}

/** For one window within a test. Ends with the test, also with one that fails. */
export function startProber(context: Ending, target: Probed): { stop(): Gap } {
  const calls = startCalls();
  context.after(async () => calls.end());
  calls.begin(target);
  return {
    stop() {
      calls.leave(target.url);
      return calls.gap();
    },
  };
}

/**
 * For a whole file of hostile tests: one line of it, which `npm run test:long` alone obeys. Every
 * server that a test starts is called until it is stopped; the file fails where others had to wait
 * for one. Tests of a part alone hand in `startServer`: then a whole service runs beside them, on
 * the thread that they use.
 */
export function keepOthersServed(
  startBeside: (context: Ending) => Promise<unknown> = async () => undefined,
): void {
  if (!isLong) return;
  const ends: (() => Promise<void>)[] = [];
  let calls: ReturnType<typeof startCalls> | undefined;
  let servers = 0;
  const hear = (announced: unknown): void => {
    const { kind, ...server } = announced as Announcement;
    servers += 1;
    if (kind === 'up') calls?.begin(server);
    else calls?.leave(server.url);
  };
  before(async () => {
    calls = startCalls();
    announcements.subscribe(hear);
    await startBeside({ after: (end) => ends.push(end) });
  });
  after(async () => {
    for (const end of ends) await end();
    announcements.unsubscribe(hear);
    calls?.end();
    const gap = calls?.gap();
    assert.ok(gap !== undefined && (gap.calls > 0 || servers === 0), 'no server was called');
    assertServed(gap);
  });
}

export function assertServed(gap: Gap, milliseconds = gapMilliseconds): void {
  assert.ok(gap.own < milliseconds, `/hello of ${gap.name}: ${describeGap(gap)}`);
}

export function describeGap({ waited, own }: Gap): string {
  return `at most ${own.toFixed()} ms (${waited.toFixed()} by the clock)`;
}

function startCalls() {
  const targets = new Map<string, { call(): Promise<void>; leave(): void }>();
  let gap: Gap = { waited: 0, own: 0, name: '', calls: 0 };
  /** For how many milliseconds, ever, the timer of the calls came too late. */
  let late = 0;
  let dueAt = performance.now() + everyMilliseconds;
  const latest = (): number => late + Math.max(0, performance.now() - dueAt);
  const note = (waited: number, own: number, name: string): void => {
    gap = { ...gap, waited: Math.max(gap.waited, waited), calls: gap.calls + 1 };
    if (own > gap.own) gap = { ...gap, own, name };
  };
  const timer = setInterval(() => {
    late = latest();
    dueAt = performance.now() + everyMilliseconds;
    for (const target of targets.values()) void target.call();
  }, everyMilliseconds);
  return {
    begin({ url, pid = process.pid, name = url }: Probed): void {
      const agent = new Agent({ keepAlive: true });
      /** Of the calls that wait for their response. */
      const open = new Set<() => void>();
      const call = async (): Promise<void> => {
        const [start, lateBefore, queuedBefore] = [performance.now(), latest(), queuedTime(pid)];
        const close = (): void => {
          open.delete(close);
          const waited = performance.now() - start;
          // A server on this thread may be what made the timer late.
          const lateness = pid === process.pid ? 0 : latest() - lateBefore;
          note(waited, waited - Math.max(lateness, queuedTime(pid) - queuedBefore), name);
        };
        open.add(close);
        const status = await ask(`${url}/hello`, agent);
        if (!open.has(close)) return; // the server has been stopped meanwhile
        if (status === 200) close();
        else note(Infinity, Infinity, name);
      };
      const leave = (): void => {
        for (const close of open) close();
        agent.destroy();
      };
      targets.set(url, { call, leave });
      void call();
    },
    leave(url: string): void {
      targets.get(url)?.leave();
      targets.delete(url);
    },
    gap: () => gap,
    end(): void {
      clearInterval(timer);
      for (const { leave } of targets.values()) leave();
      targets.clear();
    },
  };
}

/** For how many milliseconds, ever, a process's main thread was ready and not let run (Linux). */
function queuedTime(pid: number): number {
  try {
    const [, nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
    return Number(nanoseconds) / 1e6;
  } catch {
    return 0;
  }
}

/** The status; 0 where no response came. A kept connection that has just ended is none's fault. */
function ask(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve) => {
    const asking = get(url, { agent }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('close', () => resolve(0));
    });
    asking.once('error', () => resolve(asking.reusedSocket ? ask(url, agent) : 0));
  });
}
