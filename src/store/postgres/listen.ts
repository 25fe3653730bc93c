/**
 * LISTEN on a connection of its own. If a notification is lost, a comment only takes longer to
 * reach other nodes.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { run, type Server, sql } from './connection.ts';

export type Listening = ReturnType<typeof listen>;

/** A connection can be dead without an error, so it is checked at this interval. */
const checkMilliseconds = 5_000;
const answerSeconds = 4;
const retryMilliseconds = 200;

/**
 * Calls `onNotification` with the node that sent each, and without one after each connection,
 * because some may have been missed. The connection is replaced when it is lost.
 */
export function listen(server: Server, log: Log, onNotification: (fromNode?: string) => void) {
  const ending = new AbortController();
  /** Ends the present pause. `AbortSignal.any` would leak on Node 20: an entry for each call. */
  let pausing = new AbortController();
  let isActive = false;
  let isLogged = false;

  /** Listens until the connection is lost. */
  const listenOnce = async (): Promise<void> => {
    const closed = (pausing = new AbortController());
    const { signal } = closed;
    const connection = await server.connect({
      statementSeconds: answerSeconds,
      onNotification,
      onClosed: () => closed.abort(),
    });
    try {
      while (!ending.signal.aborted) {
        // Repeating it has no effect: it checks the connection.
        await run(connection, sql`LISTEN inkwell_comments`);
        if (!isActive) onNotification();
        isActive = true;
        isLogged = false;
        await pause(checkMilliseconds, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      isActive = false;
      connection.end();
    }
  };
  const listenAlways = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await listenOnce().catch((error: unknown) => {
        // Logged once: listening is retried, and the pool logs that the database is away.
        if (!isLogged) log('warn', 'database sends no notifications', { reason: toReason(error) });
        isLogged = true;
      });
      pausing = new AbortController();
      const { signal } = pausing;
      if (ending.signal.aborted) break;
      await pause(retryMilliseconds, undefined, { signal }).catch(() => undefined);
    }
  };
  void listenAlways();
  return {
    /** True while notifications are received. */
    isActive: (): boolean => isActive,
    close(): void {
      ending.abort();
      pausing.abort();
    },
  };
}
