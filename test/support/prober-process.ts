/**
 * The prober, in a process of its own: calls `/hello` of every server that it is told of, each 50
 * ms, and one that does nothing in a process of its own too. The machine is others' as well: where
 * it lets none of its processes run, that server has to be waited for too, and that time is not
 * the service's.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Announcement, clock } from './announce.js';

/** What the process is told; a report is answered with a `Gap`, of the time since the last. */
export type Order = Announcement | { readonly kind: 'report' };

/** The longest time from a call to its response, in a time; endless where none came. */
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

/** The module as a program: `fork(proberProgram)`. It is ready once it has sent a message. */
export const proberProgram = fileURLToPath(import.meta.url);

const everyMilliseconds = 50;
/** For so long is it known when the server that does nothing was waited for. */
const memoryMilliseconds = 60_000;

interface Span {
  readonly start: number;
  end: number;
}

interface Call extends Span {
  /** For how long the server had been kept from running before. */
  readonly queued: number;
}

interface Target {
  readonly url: string;
  readonly pid: number;
  readonly name: string;
  readonly agent: Agent;
  /** Calls that wait for their response. */
  readonly open: Set<Call>;
  /** When a call failed. */
  failedAt?: number;
}

interface Tally {
  add(name: string, span: Span, excused: number): void;
  addFailure(name: string): void;
  take(): Gap;
}

function createTally(): Tally {
  const nothing: Gap = { waited: 0, own: 0, name: '', calls: 0 };
  let gap = nothing;
  return {
    add(name, { start, end }, excused) {
      const waited = Math.max(gap.waited, end - start);
      gap = { ...gap, waited, calls: gap.calls + 1 };
      const own = end - start - excused;
      if (own > gap.own) gap = { ...gap, own, name };
    },
    addFailure(name) {
      gap = { ...gap, waited: Infinity, own: Infinity, name };
    },
    take() {
      const taken = gap;
      gap = nothing;
      return taken;
    },
  };
}

/** When the server that does nothing was waited for. */
function startControl(url: string): (window: Span) => number {
  const agent = new Agent({ keepAlive: true });
  const spans: Span[] = [];
  const call = async (): Promise<void> => {
    const span = { start: clock(), end: Infinity };
    spans.push(span);
    while ((spans[0]?.end ?? Infinity) < span.start - memoryMilliseconds) spans.shift();
    await ask(url, agent);
    span.end = clock();
  };
  void call();
  setInterval(() => void call(), everyMilliseconds);
  return (window) => {
    let covered = window.start;
    let waited = 0;
    for (const { start, end } of spans) {
      const from = Math.max(start, covered);
      const to = Math.min(end, window.end);
      if (to > from) waited += to - from;
      covered = Math.max(covered, to);
    }
    return waited;
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

async function probe(): Promise<void> {
  const child = fork(proberProgram, ['control']);
  const [controlUrl] = (await once(child, 'message')) as [string];
  const controlWaited = startControl(controlUrl);
  const targets = new Map<string, Target>();
  const tally = createTally();

  const close = (target: Target, call: Call, end: number): void => {
    target.open.delete(call);
    call.end = end;
    tally.add(
      target.name,
      call,
      Math.max(controlWaited(call), queuedTime(target.pid) - call.queued),
    );
  };
  const callOne = async (target: Target): Promise<void> => {
    const { url, pid, agent, open } = target;
    const call: Call = { start: clock(), end: Infinity, queued: queuedTime(pid) };
    open.add(call);
    const status = await ask(`${url}/hello`, agent);
    if (!open.has(call)) return; // the server has been stopped meanwhile
    if (status === 200) close(target, call, clock());
    else {
      open.delete(call);
      // That the server is stopped may be heard of only now.
      target.failedAt ??= clock();
    }
  };
  const leave = (target: Target, at: number): void => {
    targets.delete(target.url);
    if ((target.failedAt ?? at) < at) tally.addFailure(target.name);
    for (const call of target.open) close(target, call, at);
    target.agent.destroy();
  };

  process.on('message', (order: Order) => {
    if (order.kind === 'up') {
      const { url, pid, name } = order;
      const agent = new Agent({ keepAlive: true });
      const target = { url, pid, name, agent, open: new Set<Call>() };
      targets.set(url, target);
      void callOne(target);
    } else if (order.kind === 'down') {
      const target = targets.get(order.url);
      if (target !== undefined) leave(target, order.at);
    } else {
      for (const { failedAt, name } of targets.values()) {
        if (failedAt !== undefined) tally.addFailure(name);
      }
      process.send?.(tally.take());
    }
  });
  process.on('disconnect', () => process.exit());
  setInterval(() => {
    for (const target of targets.values()) void callOne(target);
  }, everyMilliseconds);
  process.send?.('ready');
}

function serveNothing(): void {
  const server = createServer((_request, response) => response.end());
  server.listen(0, '127.0.0.1', () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  process.on('disconnect', () => process.exit());
}

if (process.argv[1] === proberProgram) {
  if (process.argv[2] === 'control') serveNothing();
  else await probe();
}
