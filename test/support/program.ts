/** The program itself as a process of its own: what is measured and killed is the server alone. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { announce } from './announce.ts';
import { isLong } from './long.ts';
import { patient } from './pace.ts';
import { within } from './until.ts';
import type { Ending } from './server.ts';

const program = fileURLToPath(new URL('../../dist/server.js', import.meta.url));

export type Program = Awaited<ReturnType<typeof runProgram>>;

export interface Measure {
  /** Resident memory in bytes. */
  readonly resident: number;
  /** Bytes that are in use: what the machine has not taken back yet is not among them. */
  readonly inUse: number;
  /** Resident memory at its highest, without waiting for a collection. */
  readonly residentMax: number;
  /** Open descriptors; undefined where the machine does not tell. */
  readonly descriptors: number | undefined;
  /** The longest time in milliseconds for which the event loop was held since it was last asked. */
  readonly heldLoop: number;
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments of node before the program. */
  readonly flags?: readonly string[];
  /** A folder that outlives the run, for a run after it. */
  readonly folder?: string;
  /** Lets it be asked for what it holds. */
  readonly measured?: boolean;
  /** The program, if it is another than dist/server.js. */
  readonly file?: string;
  /** An executable that needs no node. */
  readonly executable?: string;
}

/** Runs beside the service in its process, and answers every message with a measure. */
const probe = `
  import { readdirSync } from 'node:fs';
  import { monitorEventLoopDelay } from 'node:perf_hooks';
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  let residentMax = 0;
  const look = () => (residentMax = Math.max(residentMax, process.memoryUsage.rss()));
  setInterval(look, 50).unref();
  process.on('message', () => {
    look();
    const heldLoop = delay.max / 1e6;
    for (let round = 0; round < 3; round += 1) gc();
    let descriptors;
    try { descriptors = readdirSync('/proc/self/fd').length; } catch {}
    const { rss: resident, heapUsed, external } = process.memoryUsage();
    process.send({ resident, residentMax, inUse: heapUsed + external, descriptors, heldLoop });
    delay.reset();
  });
`;
const probeFlags = ['--expose-gc', '--import', `data:text/javascript,${encodeURIComponent(probe)}`];

/** Killed with the test that asked for it. */
export async function runProgram(context: Ending, options: ProgramOptions = {}) {
  const { env = {}, flags = [], folder: given, measured = false, file = program } = options;
  const folder = given ?? (await mkdtemp(join(tmpdir(), 'inkwell-server-')));
  // Nodes of one database would need one folder.
  const place = 'STORE_URL' in env ? { TMPDIR: folder } : { UPLOAD_DIR: folder };
  const { executable } = options;
  const args = executable === undefined ? [...(measured ? probeFlags : []), ...flags, file] : [];
  const child = spawn(executable ?? process.execPath, args, {
    env: { ...patient, HOST: '127.0.0.1', PORT: '0', ...place, ...env },
    stdio: measured ? ['ignore', 'pipe', 'pipe', 'ipc'] : ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  // Behind the exit its last output may still be on the way.
  const closed = once(child, 'close') as Promise<[number | null]>;
  let announceStop: (() => void) | undefined;
  context.after(async () => {
    announceStop?.();
    child.kill('SIGKILL');
    await exited;
    if (given === undefined) await rm(folder, { recursive: true, force: true });
  });
  const { stdout, stderr } = child;
  assert.ok(stdout !== null && stderr !== null);
  let output = '';
  let errors = '';
  stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  return {
    child,
    /** Where it uploads to. */
    folder,
    output: () => output,
    errors: () => errors,
    /** The exit code and how long it took, from now on. */
    async ended() {
      const started = performance.now();
      await within(exited, 'the end of the program', isLong ? 600 : 40);
      const milliseconds = performance.now() - started;
      const [code] = await closed;
      return { code, milliseconds };
    },
    /** The line that says where it listens, and the port in it. */
    async listening() {
      for (;;) {
        const line = output.split('\n').find((one) => one.includes('"listening"'));
        const port = /:(\d+)"/.exec(line ?? '')?.[1];
        if (line !== undefined && port !== undefined) {
          const url = `http://127.0.0.1:${port}`;
          announceStop ??= announce(context, url, child.pid);
          return { line, port: Number(port), url };
        }
        await Promise.race([once(stdout, 'data'), exited]);
        assert.equal(child.exitCode, null, errors);
      }
    },
    /** What it holds now, with its garbage collected. Needs `measured`. */
    async measure() {
      child.send('measure');
      const answer = once(child, 'message') as Promise<[Measure]>;
      const ended = exited.then(() => assert.fail(`The program ended: ${errors}${output}`));
      const [measure] = await Promise.race([answer, ended]);
      return measure;
    },
  };
}

/** One of several nodes. */
export type NodeProcess = Awaited<ReturnType<typeof startNode>>;

/** Resolves once it listens. */
export async function startNode(context: Ending, env: Readonly<Record<string, string>>) {
  const { child, output, ended, listening } = await runProgram(context, { env });
  const { url } = await listening();
  return {
    /** Without a slash at its end. */
    url,
    pid: child.pid ?? 0,
    /** The lines of its log so far. */
    get logged() {
      const lines = output().split('\n').slice(0, -1);
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    /** Sends a signal; SIGKILL and SIGTERM resolve when the process is gone. */
    async signal(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      if (signal === 'SIGKILL' || signal === 'SIGTERM') await ended();
    },
  };
}
