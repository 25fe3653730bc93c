/** A whole service for one test: its own port, its own folder, gone with the test. */

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type App, createApp } from '../../dist/app.js';
import { type Config, readConfig } from '../../dist/config.js';
import { HttpServer } from '../../dist/http/server/server.js';
import type { LogFacts, LogLevel } from '../../dist/log.js';
import { announce } from './announce.ts';
import { patient } from './pace.ts';

export interface LogRecord extends Record<string, unknown> {
  readonly level: LogLevel;
  readonly event: string;
}

/** Headers of a request. */
export type Sent = Readonly<Record<string, string>>;

export type TestServer = Awaited<ReturnType<typeof startServer>>;

export interface ServerOptions {
  /** Settings by their names in the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** In the place of limits that are no settings. */
  readonly constants?: Partial<Config>;
  readonly now?: () => Date;
  readonly monotonicNow?: () => number;
  /** What the process may hold. */
  readonly memoryBytes?: number;
  /** False where a prober's connection would be one too many. */
  readonly probed?: boolean;
}

/** What ends with a test, or a suite. */
export interface Ending {
  after(end: () => Promise<void>): unknown;
}

/** Stops with the test, or the suite, that asked for it. */
export async function startServer(context: Ending, options: ServerOptions = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'inkwell-test-'));
  const logged: LogRecord[] = [];
  const log = (level: LogLevel, event: string, facts: LogFacts = {}): void => {
    logged.push({ ...facts, level, event });
  };
  // Nodes of one database would need one folder.
  const uploadDir = options.env?.['STORE_URL'] === undefined ? folder : '';
  const address = { HOST: '127.0.0.1', PORT: '0' };
  const env = { ...patient, UPLOAD_DIR: uploadDir, ...address, ...options.env };
  const config = { ...readConfig(env, options.memoryBytes), ...options.constants };
  const app = await createApp(config, {
    log,
    now: options.now ?? ((): Date => new Date()),
    monotonicNow: options.monotonicNow ?? ((): number => performance.now()),
  });
  const { listener, upgrade, pool } = app;
  const server = new HttpServer({ listener, upgrade, pool, config });
  const { port } = await server.listen(config.port, config.host);
  const url = `http://127.0.0.1:${port}`;
  const adminUrl = config.adminPort === undefined ? '' : await startAdmin(context, app, config);

  const announceStop = options.probed === false ? undefined : announce(context, url);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    if (stopped === undefined) announceStop?.();
    return (stopped ??= server.close(() => app.endSockets()).then(() => app.close()));
  };
  context.after(async () => {
    await stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** As `fetch`, with a JSON body. */
  const send = (method: string, path: string, ...more: readonly [body?: unknown, Sent?]) => {
    const [body, others = {}] = more;
    const headers = { 'Content-Type': 'application/json', ...others };
    return fetch(url + path, { method, body: JSON.stringify(body), headers });
  };
  return {
    /** `http://127.0.0.1:port`, without a slash at its end. */
    url,
    port,
    /** Where `/metrics` is, if ADMIN_PORT is set. */
    adminUrl,
    config,
    /** The text of `/metrics`. */
    metrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    /** The folder in which the run's folder of uploads is made. */
    folder,
    /** What the service logged. */
    logged,
    /** The clean stop that SIGTERM starts. */
    stop,
    fetch: (path: string, init?: RequestInit) => fetch(url + path, init),
    /** What a path has, as JSON. */
    read: async <T>(path: string, headers: Sent = {}) =>
      (await (await fetch(url + path, { headers })).json()) as T,
    send,
    /** The path of what a POST makes. */
    make: async (path: string, body: unknown, headers: Sent = {}): Promise<string> => {
      const response = await send('POST', path, body, headers);
      assert.equal(response.status, 201, path);
      return new URL(response.headers.get('location') ?? '', url).pathname;
    },
  };
}

async function startAdmin(context: Ending, app: App, config: Config): Promise<string> {
  const { adminListener: listener, adminPool: pool, upgrade } = app;
  const server = new HttpServer({ listener, upgrade, pool, config });
  const { port } = await server.listen(0, config.host);
  context.after(() => server.close(() => Promise.resolve()));
  return `http://127.0.0.1:${port}`;
}
