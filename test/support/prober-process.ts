/**
 * The prober, in a process of its own: calls `/hello` of every server that it is told of, each 50
 * ms. The machine is others' as well: the time for which it let the prober or the server wait for a
 * processor is not the service's.
 */

import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
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
const nothing: Gap = { waited: 0, own: 0, name: '', calls: 0 };

interface Call {
  readonly start: number;
  /** For how long the server and the prober had been kept from running before. */
  readonly queued: number;
  readonly late: number;
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

function probe(): void {
  const targets = new Map<string, Target>();
  let gap = nothing;
  /** For how many milliseconds, ever, the timer of the prober came too late. */
  let late = 0;
  let dueAt = clock() + everyMilliseconds;

  const close = ({ open, name, pid }: Target, call: Call, end: number): void => {
    open.delete(call);
    const waited = end - call.start;
    const own = waited - Math.max(latest() - call.late, queuedTime(pid) - call.queued);
    gap = { ...gap, waited: Math.max(gap.waited, waited), calls: gap.calls + 1 };
    if (own > gap.own) gap = { ...gap, own, name };
  };
  const latest = (): number => late + Math.max(0, clock() - dueAt);
  const fail = ({ name }: Target): void => {
    gap = { ...gap, waited: Infinity, own: Infinity, name };
  };
  const callOne = async (target: Target): Promise<void> => {
    const { url, pid, agent, open } = target;
    const call: Call = { start: clock(), queued: queuedTime(pid), late: latest() };
    open.add(call);
    const status = await ask(`${url}/hello`, agent);
    if (!open.has(call)) return; // the server has been stopped meanwhile
    if (status === 200) return close(target, call, clock());
    open.delete(call);
    // That the server is stopped may be heard of only now.
    target.failedAt ??= clock();
  };
  const leave = (target: Target, at: number): void => {
    targets.delete(target.url);
    if ((target.failedAt ?? at) < at) fail(target);
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
      for (const target of targets.values()) if (target.failedAt !== undefined) fail(target);
      process.send?.(gap);
      gap = nothing;
    }
  });
  process.on('disconnect', () => process.exit());
  setInterval(() => {
    late = latest();
    dueAt = clock() + everyMilliseconds;
    for (const target of targets.values()) void callOne(target);
  }, everyMilliseconds);
  process.send?.('ready');
}

if (process.argv[1] === proberProgram) probe();
