/**
 * LISTEN on a connection of its own. If a notification is lost, a comment only takes longer to
 * reach other nodes.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { run, type Server, sql } from './client/connection.ts';

export type Listening = ReturnType<typeof listen>;

/** A connection can be dead without an error, so it is checked at this interval. */
const checkMilliseconds = 5_000;
const responseSeconds = 4;
const retryMilliseconds = 200;

/**
 * Calls `onNotification` with the node that sent each, and without one after each connection,
 * because some may have been missed. The connection is replaced when it is lost.
 */
export function listen(server: Server, log: Log, onNotification: (fromNode?: string) => void) {
  const closing = new AbortController();
  let isActive = false;
  let isLogged = false;
  /** Ends the pause between two checks of the present connection. */
  let pausing = new AbortController();

  /** Listens until the connection is lost. */
  const listenOnce = async (): Promise<void> => {
    // `AbortSignal.any` would leak on Node 20: an entry for each call.
    const present = (pausing = new AbortController());
    const { signal } = present;
    const connection = await server.connect({
      statementSeconds: responseSeconds,
      onNotification,
      onClosed: () => present.abort(),
    });
    try {
      while (!closing.signal.aborted) {
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
    while (!closing.signal.aborted) {
      await listenOnce().catch((error: unknown) => {
        // Logged once: listening is retried, and the pool logs that the database is away.
        if (!isLogged) log('warn', 'database sends no notifications', { reason: toReason(error) });
        isLogged = true;
      });
      // A process that stops does not wait for it.
      await pause(retryMilliseconds, undefined, { ref: false });
    }
  };
  void listenAlways();
  return {
    /** True while notifications are received. */
    isActive: (): boolean => isActive && server.hasSessions,
    close(): void {
      closing.abort();
      pausing.abort();
    },
  };
}
