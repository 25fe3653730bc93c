/** A server as its users run it: a process of its own, on a free port. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface NodeProcess {
  /** `http://127.0.0.1:port`, without a slash at its end. */
  readonly url: string;
  readonly pid: number;
  readonly logged: readonly Readonly<Record<string, unknown>>[];
  /** Sends a signal; SIGKILL and SIGTERM resolve when the process is gone. */
  signal(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
}

export interface StartContext {
  after(end: () => Promise<void>): unknown;
}

/** Killed with the test, or the suite, that asked for it. */
export async function startNode(
  context: StartContext,
  env: Readonly<Record<string, string>>,
): Promise<NodeProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-node-'));
  const child = spawn(process.execPath, ['dist/server.js'], {
    env: { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', TMPDIR: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  context.after(async () => {
    await kill(child, 'SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });
  const logged: Record<string, unknown>[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    const said: string[] = [];
    child.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString()));
    child.once('exit', (code) => reject(new Error(`exit ${code}: ${said.join('')}`)));
    createInterface(child.stdout).on('line', (line) => {
      const record = JSON.parse(line) as Record<string, unknown>;
      logged.push(record);
      if (record['event'] === 'listening') resolve(String(record['url']));
    });
  });
  return { url, pid: child.pid ?? 0, logged, signal: (signal) => kill(child, signal) };
}

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const isLast = signal === 'SIGKILL' || signal === 'SIGTERM';
  const gone = isLast ? once(child, 'exit') : undefined;
  child.kill(signal);
  await gone;
}
