#!/usr/bin/env node
/**
 * The process: settings → app → listen → signals → drain. The only user of `process`. Every way
 * out is one line in the log and an exit code: 0 after a clean stop, 1 after a failure. With
 * arguments it is a command instead, which is loaded then; 2 says that there is none like it.
 */

import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { adviseOn } from './commands/advice.ts';
import type { Invocation } from './commands/arguments.ts';
import { createApp, type App, type AppDeps } from './app.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { AppError, toReason } from './errors.ts';
import { refuse } from './http/server/raw-response.ts';
import { createHttpServer, type HttpServer } from './http/server/server.ts';
import { createLog, createLogOutput, type LineWriter, type Log, type LogOutput } from './log.ts';
import { adminConnectionsMax, newSpaceBytes, sumOfBounds } from './memory-plan.ts';
import { MiB } from './settings.ts';

/** Of the log: enough to see what happens, and no flood fills a disk. */
const linesPerSecondMax = 200;

const newSpace = newSpaceBytes(process.versions.v8);

const args = process.argv.slice(2);
// Most starts have none, and need not load what reads them.
const invocation: Invocation =
  args.length === 0
    ? { environment: process.env, run: undefined }
    : (await import('./commands/arguments.ts')).parseArguments(args, process.env, getVersion);
if (invocation.run === undefined) await start(invocation.environment);
else {
  process.exitCode = await invocation.run({
    environment: invocation.environment,
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
    // A person at a terminal is told in a sentence.
    log: process.stderr.isTTY
      ? (): void => undefined
      : createLog(writeError, { linesPerSecondMax, now }),
    now,
  });
}

function writeError(line: string): true {
  process.stderr.write(line);
  return true;
}

function readSettings(environment: Environment, memoryBytes: number): Config {
  try {
    // Shares are of what is left beside the space for new objects.
    return readConfig(environment, memoryBytes - newSpace);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const line of error.message.split('\n')) process.stderr.write(`inkwell: ${line}\n`);
    return process.exit(1);
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

async function start(environment: Environment): Promise<void> {
  const memoryBytes = getMemoryBytes();
  const config = readSettings(environment, memoryBytes);
  const output = createLogOutput(process.stdout);
  process.on('exit', output.flush);
  const fail = createFail(output.write);
  process.on('uncaughtException', (error) => fail('unexpected failure', error));
  process.on('unhandledRejection', (reason) => fail('unexpected failure', reason));
  // Ours has been read. graphql-js, which is loaded later, reads it too, and checks each value that
  // it meets once more unless this is `production`: a list takes it half as long again.
  process.env['NODE_ENV'] ||= 'production';
  const logs = createLogs(config, output);
  await serve(config, { ...logs, fail, memoryBytes });
  for (const advice of adviseOn(config, environment)) logs.log('warn', advice);
}

function createLogs(
  config: Config,
  { write, hold }: LogOutput,
): Pick<Outlets, 'log' | 'requestLog'> {
  const { logFormat, logLevel: level } = config;
  const isPretty = logFormat === 'auto' ? process.stdout.isTTY : logFormat === 'pretty';
  const options = { now, level, format: isPretty ? 'pretty' : 'json' } as const;
  const log = createLog(write, { ...options, linesPerSecondMax });
  if (config.logRequests !== 'all') return { log, requestLog: log };
  // Where every request is asked for, a limit would leave out most of them.
  return {
    log,
    requestLog: createLog(hold, {
      ...options,
      now: oncePerIteration(now),
      linesPerSecondMax: Infinity,
    }),
  };
}

interface Outlets {
  readonly log: Log;
  readonly requestLog: Log;
  readonly fail: Fail;
  /** What the process may take. */
  readonly memoryBytes: number;
}

async function serve(config: Config, outlets: Outlets): Promise<void> {
  const { log, requestLog, fail, memoryBytes } = outlets;
  let app: App;
  try {
    app = await createApp(config, {
      log,
      requestLog,
      readings: { connections: () => server.connections, memory: process.memoryUsage },
      now,
      monotonicNow: () => performance.now(),
      run: describeRun(),
    });
  } catch (error) {
    process.stderr.write(`inkwell: ${toReason(error)}\n`);
    process.exit(1);
  }
  const { listener, upgrade, pool } = app;
  const server = createHttpServer({ listener, upgrade, pool, config });
  try {
    const { port, address } = await listenOn('PORT', server, config);
    const adminPort = await openAdmin(app, config);
    // Before the line: who reads it may send a signal at once.
    stopOnSignals(server, app, { config, log, fail });
    const memoryMaxMiB = Math.ceil(sumOfBounds(config, newSpace) / MiB);
    const adminUrl = adminPort === undefined ? undefined : toUrl(address, adminPort);
    const url = toUrl(address, port);
    const ui = `${url}/graphql-ui/`;
    log('info', 'listening', { url, ui, address: toHost(address), adminUrl, memoryMaxMiB });
    const memoryMiB = Math.floor(memoryBytes / MiB);
    if (memoryMaxMiB > memoryMiB) {
      log('warn', 'the limits allow more memory than there is', { memoryMaxMiB, memoryMiB });
    }
  } catch (error) {
    await app.close();
    process.stderr.write(`inkwell: ${toReason(error)}\n`);
    process.exit(1);
  }
}

/** It goes on to answer until the process ends. Resolves with its port, if one is asked for. */
async function openAdmin(app: App, config: Config): Promise<number | undefined> {
  const { adminPort } = config;
  if (typeof adminPort !== 'number') return undefined;
  const server = createHttpServer({
    listener: app.adminListener,
    upgrade: (_incoming, socket) => refuse(socket, new AppError('not_found', 'No sockets here.')),
    pool: app.adminPool,
    config: { ...config, connectionsMax: adminConnectionsMax },
  });
  const { port } = await listenOn('ADMIN_PORT', server, { host: config.host, port: adminPort });
  return port;
}

/** Resolves with where it listens; rejects with an Error that names the setting. */
async function listenOn(
  name: string,
  server: HttpServer,
  { host, port }: Place,
): Promise<AddressInfo> {
  try {
    return await server.listen(port, host);
  } catch (error) {
    throw new Error(whyNotListening(error, name, { host, port }), { cause: error });
  }
}

type Place = Pick<Config, 'host' | 'port'>;

/** What a bundle puts in place of package.json beside `dist/`. */
declare const bundledVersion: string | undefined;

function getVersion(): string {
  if (typeof bundledVersion === 'string') return bundledVersion;
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** So that a later run can tell a folder in use from one that was left behind. */
function describeRun(): AppDeps['run'] {
  return {
    host: hostname(),
    pid: process.pid,
    startedAt: performance.timeOrigin,
    isRunning(pid) {
      try {
        return process.kill(pid, 0);
      } catch (error) {
        // Any other answer than "no such process" is one by a process.
        return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
      }
    },
  };
}

/** Beyond its heap limit V8 ends the process, beyond the container's memory the system does. */
function getMemoryBytes(): number {
  const heap = getHeapStatistics().heap_size_limit;
  const container = process.constrainedMemory(); // 0 where there is none
  return container > 0 ? Math.min(heap, container) : heap;
}

/** Where all addresses are listened to, one of them is as good as another. */
function toUrl(address: string, port: number): string {
  const isAll = address === '::' || address === '0.0.0.0';
  return `http://${isAll ? 'localhost' : toHost(address)}:${port}`;
}

function toHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

function whyNotListening(error: unknown, name: string, { port, host }: Place): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const place = host === '' ? `port ${port}` : `port ${port} of ${host}`;
  if (code === 'EADDRINUSE') return `${name}: ${place} is in use.`;
  if (code === 'EACCES') return `${name}: ${place} is not open to this user.`;
  return `HOST, ${name}: it is not possible to listen on ${place} (${code}).`;
}

/** A connection that is in use has its next request within this. */
const settleMilliseconds = 1_000;

/** The first signal drains, after a delay where one is set; a second one ends at once. */
function stopOnSignals(
  server: HttpServer,
  app: App,
  { config, log, fail }: Pick<Outlets, 'log' | 'fail'> & { readonly config: Config },
): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1);
    stopping = true;
    log('info', 'stopping', { signal });
    app.announceStop();
    pause(config.drainDelaySeconds * 1000)
      .then(() => server.settle(settleMilliseconds))
      .then(() => server.close(() => app.endSockets()))
      .then(() => app.close())
      .then(
        () => {
          log('info', 'stopped');
          process.exit(0);
        },
        (error: unknown) => fail('stop failed', error),
      );
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

type Fail = (event: string, reason: unknown) => never;

/** The last line gets a log of its own: no flood before it can push it out. */
function createFail(write: LineWriter): Fail {
  return (event, reason) => {
    const log = createLog(write, { linesPerSecondMax: 1, now });
    log('error', event, {
      reason: reason instanceof Error ? (reason.stack ?? reason.message) : String(reason),
    });
    process.exit(1);
  };
}

/** The clock, read once in an iteration of the event loop: to read it costs as much as a line. */
function oncePerIteration(read: () => Date): () => Date {
  let time: Date | undefined;
  const forget = (): void => void (time = undefined);
  return () => {
    if (time === undefined) setImmediate(forget);
    return (time ??= read());
  };
}

function now(): Date {
  return new Date();
}
