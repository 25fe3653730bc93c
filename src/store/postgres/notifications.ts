/**
 * Notifications between nodes: NOTIFY, and LISTEN on a separate connection. If one is lost, a
 * comment only takes longer to reach other nodes.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { run, type Server } from './connection.ts';
import type { Pool } from './pool.ts';
import { sql } from './connection.ts';

export interface Notifications {
  /** Notifies the other nodes. Never rejects, never waits. */
  send(): void;
  /** Listens on a separate connection, which is replaced when it is lost. */
  listen(listener: NotificationListener): Listening;
}

export interface NotificationListener {
  readonly onNotification: (fromNode: string) => void;
  /** Called after each connection, because notifications may have been missed. */
  readonly onConnected: () => void;
}

export interface Listening {
  /** Settles when it is listening, or after the first failure. */
  readonly begun: Promise<void>;
  /** True while notifications are received. */
  isActive(): boolean;
  close(): Promise<void>;
}

/** For nodes that cannot receive notifications. */
const noNotifications: Notifications = {
  send: () => undefined,
  listen: () => ({
    begun: Promise.resolve(),
    isActive: () => false,
    close: () => Promise.resolve(),
  }),
};

export interface NotificationDeps {
  readonly pool: Pool;
  /** The server for LISTEN; undefined if notifications cannot be received. */
  readonly listenServer: Server | undefined;
  readonly log: Log;
  readonly nodeId: string;
}

/** A connection can be dead without an error, so it is checked at this interval. */
const checkMilliseconds = 5_000;
const answerSeconds = 5;
const retryMilliseconds = 200;

export function createNotifications(deps: NotificationDeps): Notifications {
  const { pool, listenServer, log, nodeId } = deps;
  if (listenServer === undefined) return noNotifications;
  let logged = false;
  /** Logged once: listening is retried, and the pool logs that the database is away. */
  const report = (error?: unknown): void => {
    const isNew = error !== undefined && !logged;
    logged = error !== undefined;
    if (isNew) log('warn', 'database sends no notifications', { reason: toReason(error) });
  };
  return {
    send() {
      pool.write(sql`SELECT pg_notify('inkwell_comments', ${nodeId})`).catch(() => undefined);
    },
    listen: (listener) => startListening(listenServer, listener, report),
  };
}

/** `report` is called with an error, and without one when listening works again. */
function startListening(
  server: Server,
  { onNotification, onConnected }: NotificationListener,
  report: (error?: unknown) => void,
): Listening {
  const ending = new AbortController();
  let isActive = false;
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));

  /** Listens until the connection is lost. */
  const listenOnce = async (): Promise<void> => {
    // Ends a pause when the connection was closed.
    const closed = new AbortController();
    const signal = AbortSignal.any([ending.signal, closed.signal]);
    const connection = await server.connect({
      statementSeconds: answerSeconds,
      onNotification,
      onClosed: () => closed.abort(),
    });
    try {
      while (!ending.signal.aborted) {
        // Repeating it has no effect: it checks the connection.
        await run(connection, sql`LISTEN inkwell_comments`);
        if (!isActive) {
          isActive = true;
          report();
          onConnected();
          begin();
        }
        await pause(checkMilliseconds, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      isActive = false;
      connection.end();
    }
  };
  const listen = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await listenOnce().catch(report);
      begin();
      await pause(retryMilliseconds, undefined, ending).catch(() => undefined);
    }
  };
  const ended = listen();

  return {
    begun,
    isActive: () => isActive,
    async close() {
      ending.abort();
      await ended;
    },
  };
}
