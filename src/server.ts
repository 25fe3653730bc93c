#!/usr/bin/env node
/**
 * The process: settings → app → listen → signals → drain. Only this file uses `process`. Exit
 * codes: 0 after a clean stop or a command, 1 after a failure, 2 for invalid arguments. With
 * arguments it runs a command, which is loaded on demand, instead of serving.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { findMissingAccounts, findSettingWarnings } from './commands/check.ts';
import { createApp, type App } from './app.ts';
import { type Config, readConfig, readSecret } from './config.ts';
import { AppError, codeOf, toReason, toStack } from './errors.ts';
import { HttpServer } from './http/server/server.ts';
import {
  createLog,
  createLogOutput,
  deeds,
  type Log,
  type LogOutput,
  requestEvents,
} from './log.ts';
import { adminConnectionsMax, newSpaceBytes, sumOfBounds } from './memory-plan.ts';
import { MiB } from './settings.ts';

/** Limit for the log: enough to follow what happens, without filling the disk in a flood. */
const linesPerSecondMax = 200;

/** A connection in use sends its next request within this time. */
const settleMilliseconds = 1_000;

/** Loading holds the event loop for 0.2 s. Who has waited for the start asks before it begins. */
const beforeLoadMilliseconds = 250;

const newSpace = newSpaceBytes(process.versions.v8);

/** As process 1 a signal without a listener is ignored: until the server listens, one ends it. */
const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const endAtOnce = (signal: NodeJS.Signals): never => process.exit(128 + constants.signals[signal]);
for (const signal of stopSignals) process.on(signal, endAtOnce);

const args = process.argv.slice(2);
if (args.length === 0) await start(process.env).catch(refuseStart);
else {
  // An import runs in 150 MiB: V8 would let the space of new objects grow by 100 MiB more.
  setFlagsFromString('--semi-space-growth-factor=1');
  // Most starts have no arguments, and need not load the commands.
  const { runCommand } = await import('./commands/commands.ts');
  process.exitCode = await runCommand(args, {
    environment: process.env,
    input: process.stdin,
    output: process.stdout,
    errors: process.stderr,
    now,
    version: getVersion,
  });
}

/** Ends the process with the reason why it cannot serve. Faults of settings are a line each. */
function refuseStart(reason: unknown): never {
  for (const line of toReason(reason).split('\n')) process.stderr.write(`inkwell: ${line}\n`);
  process.exit(1);
}

async function start(environment: NodeJS.ProcessEnv): Promise<void> {
  const memoryBytes = getMemoryBytes();
  // Shares are computed from the memory that V8's new space leaves.
  const config = readConfig(environment, memoryBytes - newSpace);
  const output = createLogOutput(process.stdout);
  process.on('exit', output.flush);
  const fail: Fail = (event, reason) => {
    // A log of its own, so that a flood cannot suppress the last line.
    const last = createLog(output.write, { linesPerSecondMax: 1, now });
    last('error', event, { reason: toStack(reason) });
    process.exit(1);
  };
  process.on('uncaughtException', (error) => fail('unexpected failure', error));
  process.on('unhandledRejection', (reason) => fail('unexpected failure', reason));
  // Set for graphql-js, which is loaded later and checks each value again unless this is
  // `production`: lists take half as long again. The service's own settings are already read.
  process.env['NODE_ENV'] ||= 'production';
  const log = createServiceLog(config, output);
  const app = await createApp(config, {
    log,
    process: {
      version: getVersion(),
      startedAt: performance.timeOrigin,
      connections: () => server.connections,
      memory: process.memoryUsage,
      cpuSeconds: () => sumOf(process.cpuUsage()) / 1e6,
      openFiles: countOpenFiles,
    },
    now,
    monotonicNow: () => performance.now(),
    readSecret: (name) => readSecret(environment, name),
  });
  const { listener, upgrade, pool } = app;
  const server = new HttpServer({ listener, upgrade, pool, config });
  try {
    const { port, address } = await listenOn('PORT', server, config);
    const adminPort = await openAdmin(app, config);
    // Before the log line, because its reader may send a signal at once.
    stopOnSignals(server, app, { config, log, fail });
    const memoryMaxMiB = Math.ceil(sumOfBounds(config, newSpace) / MiB);
    const adminUrl = adminPort === undefined ? undefined : toUrl(address, adminPort);
    const url = toUrl(address, port);
    const ui = app.hasUi ? `${url}/graphql-ui/` : undefined;
    log('info', 'listening', { url, ui, address: toHost(address), adminUrl, memoryMaxMiB });
    const memoryMiB = Math.floor(memoryBytes / MiB);
    if (memoryMaxMiB > memoryMiB) {
      log('warn', 'the limits allow more memory than is available', { memoryMaxMiB, memoryMiB });
    }
  } catch (error) {
    await app.close();
    throw error;
  }
  const missing = app.hasAccounts ? [] : findMissingAccounts(config);
  for (const warning of [...findSettingWarnings(config, environment), ...missing]) {
    log('warn', warning);
  }
  // Not before, because a fast start counts; not with the first request, because that would wait.
  await pause(beforeLoadMilliseconds, undefined, { ref: false });
  const whenLoaded = (): void => log('info', 'loaded');
  await app.load().then(whenLoaded, (error: unknown) => {
    log('warn', 'loading failed, and is tried again when needed', { reason: toStack(error) });
  });
}

function sumOf({ user, system }: NodeJS.CpuUsage): number {
  return user + system;
}

/** Linux lists them. */
function countOpenFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return Number.NaN;
  }
}

/** Who did what is never lost in a flood (R53), nor are requests if all are asked for. */
function createServiceLog({ logFormat, logRequests }: Config, output: LogOutput): Log {
  const isPretty = logFormat === 'auto' ? process.stdout.isTTY : logFormat === 'pretty';
  const unlimited = new Set<string>(logRequests === 'all' ? [...deeds, ...requestEvents] : deeds);
  const format = isPretty ? 'pretty' : 'json';
  return createLog(output.write, { linesPerSecondMax, unlimited, hold: output.hold, now, format });
}

/** Starts the server of ADMIN_PORT, which runs until the process ends. Returns its port. */
async function openAdmin(app: App, config: Config): Promise<number | undefined> {
  const { adminPort } = config;
  if (adminPort === undefined) return undefined;
  const server = new HttpServer({
    listener: app.adminListener,
    upgrade: (_incoming, _socket, { refuse }) =>
      refuse(new AppError('not_found', 'No sockets here.')),
    pool: app.adminPool,
    config: { ...config, connectionsMax: adminConnectionsMax },
  });
  const { port } = await listenOn('ADMIN_PORT', server, { host: config.host, port: adminPort });
  return port;
}

/** Resolves with the address. Rejects with an Error that names the setting. */
async function listenOn(name: string, server: HttpServer, at: Pick<Config, 'host' | 'port'>) {
  const { host, port } = at;
  try {
    return await server.listen(port, host);
  } catch (error) {
    const code = codeOf(error) ?? '';
    const place = host === '' ? `port ${port}` : `port ${port} of ${host}`;
    let message = `HOST, ${name}: it is not possible to listen on ${place} (${code}).`;
    if (code === 'EADDRINUSE') message = `${name}: ${place} is in use.`;
    if (code === 'EACCES') message = `${name}: ${place} is not open to this user.`;
    throw new Error(message, { cause: error });
  }
}

/** Defined by the bundler, because a bundle has no package.json beside it. */
declare const bundledVersion: string | undefined;

function getVersion(): string {
  if (typeof bundledVersion === 'string') return bundledVersion;
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** V8 ends the process at its heap limit, the system ends it at the container's limit. */
function getMemoryBytes(): number {
  const heap = getHeapStatistics().heap_size_limit;
  const container = process.constrainedMemory(); // 0 where there is none
  return container > 0 ? Math.min(heap, container) : heap;
}

/** A wildcard address is shown as localhost. */
function toUrl(address: string, port: number): string {
  const isAll = address === '::' || address === '0.0.0.0';
  return `http://${isAll ? 'localhost' : toHost(address)}:${port}`;
}

function toHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** The first signal starts the drain, after DRAIN_DELAY_SECONDS; a second one exits at once. */
function stopOnSignals(
  server: HttpServer,
  app: App,
  { config, log, fail }: { readonly config: Config; readonly log: Log; readonly fail: Fail },
): void {
  let stopping = false;
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (stopping) process.exit(1);
    stopping = true;
    log('info', 'stopping', { signal });
    app.announceStop();
    await pause(config.drainDelaySeconds * 1000);
    await server.settle(settleMilliseconds);
    await server.close(() => app.endSockets());
    await app.close();
    log('info', 'stopped');
    process.exit(0);
  };
  for (const name of stopSignals) {
    process.off(name, endAtOnce);
    process.on(name, (signal: NodeJS.Signals) => {
      stop(signal).catch((error: unknown) => fail('stop failed', error));
    });
  }
}

type Fail = (event: string, reason: unknown) => never;

function now(): Date {
  return new Date();
}
