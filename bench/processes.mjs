/** Servers as processes of their own, a load on them, and what Linux says of both. */

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** A program that answers /hello, and how long that took from its start. */
export async function start(program, args, env) {
  const port = await freePort();
  const begun = performance.now();
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, ...env, HOST: '127.0.0.1', PORT: String(port) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  const url = `http://127.0.0.1:${port}`;
  while (!(await answers(url))) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
  }
  return { child, port, url, readyMs: performance.now() - begun };
}

function answers(url) {
  return fetch(`${url}/hello`).then(
    (response) => response.arrayBuffer().then(() => true),
    () => new Promise((resolve) => setTimeout(resolve, 1, false)),
  );
}

export function stop({ child }) {
  return new Promise((resolve) => {
    child.once('exit', resolve);
    child.kill('SIGTERM');
  });
}

/** Of a server that listens on a port. */
export function portOf(server) {
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

function freePort() {
  return new Promise((resolve) => {
    const listener = createServer().listen(0, '127.0.0.1', () => {
      const port = portOf(listener);
      listener.close(() => resolve(port));
    });
  });
}

function output(child) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.once('close', (code) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString());
      else reject(new Error(`the load ended with ${code}`));
    });
  });
}

/** CPU time of all threads so far, from the scheduler's own count. */
export function cpuNanoseconds(pid) {
  if (process.platform !== 'linux') return Number.NaN;
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [onCpu] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
    sum += Number(onCpu);
  }
  return sum;
}

/** Returns a function that tells the CPU time of the sessions that a database has now. */
export async function sessionsOf(server, url) {
  const sessions = await server.query(
    url,
    `SELECT pid FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
  );
  return () => sessions.reduce((sum, { pid }) => sum + cpuNanoseconds(pid), 0);
}

/** One load on one server: microseconds of CPU time per request, rate, latencies. */
export async function load(server, file, { seconds, connections }) {
  const before = cpuNanoseconds(server.child.pid);
  const args = [server.port, seconds, connections, file].map(String);
  const line = await output(
    spawn(process.execPath, [join(import.meta.dirname, 'load.mjs'), ...args]),
  );
  const { count, failed, failure, p50, p99 } = JSON.parse(line);
  if (failed > 0) throw new Error(`${failed} of ${count} requests failed: ${failure}`);
  const cpu = cpuNanoseconds(server.child.pid) - before;
  return { cpuMicros: cpu / 1000 / count, count, rate: count / seconds, p50, p99 };
}

/** How long another client waits while `run` is under way: see probe.mjs. */
export async function probe(server, run) {
  const args = [
    join(import.meta.dirname, 'probe.mjs'),
    String(server.port),
    String(server.child.pid),
  ];
  const prober = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const printed = output(prober);
  await run();
  prober.stdin.end();
  return JSON.parse(await printed);
}

/** Resident memory in MiB, after half a second of rest. */
export async function idleMemory(server) {
  await new Promise((resolve) => setTimeout(resolve, 500));
  return memory(server, 'VmRSS');
}

/** The most resident memory while `run` was under way, in MiB. */
export async function topMemory(server, run) {
  if (process.platform === 'linux') writeFileSync(`/proc/${server.child.pid}/clear_refs`, '5');
  await run();
  return memory(server, 'VmHWM');
}

function memory({ child }, name) {
  if (process.platform !== 'linux') return Number.NaN;
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(new RegExp(`${name}:\\s+([0-9]+)`).exec(status)?.[1]) / 1024;
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
