/**
 * Notifications between nodes: LISTEN on a separate connection, and NOTIFY. If one is lost, a
 * comment only takes longer to reach other nodes.
 */

import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isOutOfReach } from './faults.ts';
import { type Client, type Connect, createDeadline, type Pool } from './pool.ts';

export interface Hints {
  /** Notifies the other nodes. Never rejects, never waits. */
  tell(): void;
  /** Listens on a separate connection, which is replaced when it is lost. */
  listen(listener: HintListener): Listening;
}

export interface HintListener {
  readonly heard: (fromNode: string) => void;
  /** Called after each connection, because notifications may have been missed. */
  readonly connected: () => void;
}

export interface Listening {
  /** Settles when it is listening, or after the first failure. */
  readonly begun: Promise<void>;
  /** True while notifications are received. */
  areHeard(): boolean;
  close(): Promise<void>;
}

/** For nodes that cannot receive notifications. */
const noHints: Hints = {
  tell: () => undefined,
  listen: () => ({
    begun: Promise.resolve(),
    areHeard: () => false,
    close: () => Promise.resolve(),
  }),
};

export interface HintDeps {
  readonly pool: Pool;
  /** Undefined if notifications cannot be received. */
  readonly connect: Connect | undefined;
  readonly log: Log;
  readonly nodeId: string;
}

/** A connection can be dead without an error, so it is checked at this interval. */
const checkMilliseconds = 5_000;
const patienceMilliseconds = 5_000;
const retryMilliseconds = 200;

export function createHints({ pool, connect, log, nodeId }: HintDeps): Hints {
  if (connect === undefined) return noHints;
  /** True if the failure was logged. */
  let logged = false;
  const report = (error?: unknown): void => {
    // Logged once: listening is retried, and the pool logs that the database is away.
    const isNews = error !== undefined && !logged;
    logged = error !== undefined;
    if (isNews) log('warn', 'database sends no hints', { reason: toReason(error) });
  };
  return {
    tell() {
      pool
        .write((sql) => sql`SELECT pg_notify('inkwell_comments', ${nodeId})`)
        .catch(() => undefined);
    },
    listen: (listener) => startListening(connect, listener, report),
  };
}

/** `report` is called with an error, and without one when listening works again. */
function startListening(
  connect: Connect,
  { heard, connected }: HintListener,
  report: (error?: unknown) => void,
): Listening {
  const newClient = (): Client => {
    const onClosed = (): void => {
      if (listening) checkIn(retryMilliseconds);
      listening = false;
    };
    const onHeard = (_channel: string, from: string): void => heard(from);
    return connect({ connectionsMax: 1, statementSeconds: 5, heard: onHeard, closed: onClosed });
  };
  let client = newClient();
  let listening = false;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let checking = check();

  async function check(): Promise<void> {
    try {
      await listen(client, () => {
        connect.passOver(client);
        client = newClient();
      });
      if (!listening && !closed) {
        listening = true;
        report();
        connected();
      }
    } catch (error) {
      if (!closed) report(error);
      listening = false;
      if (isOutOfReach(error) && connect.passOver(client)) {
        client.end({ timeout: 0 }).catch(() => undefined);
        client = newClient();
      }
    }
    checkIn(listening ? checkMilliseconds : retryMilliseconds);
  }

  /** Only one check is scheduled at a time. */
  function checkIn(milliseconds: number): void {
    clearTimeout(timer);
    if (closed) return;
    timer = setTimeout(() => {
      checking = check();
    }, milliseconds);
  }

  return {
    begun: checking,
    areHeard: () => listening,
    async close() {
      closed = true;
      clearTimeout(timer);
      await client.end({ timeout: 1 });
      await checking;
    },
  };
}

/**
 * Repeating LISTEN has no effect: it checks the connection. If there is no answer, the connection
 * is closed, and `giveUp` replaces it.
 */
async function listen(client: Client, giveUp: () => void): Promise<void> {
  const deadline = createDeadline(patienceMilliseconds, () => {
    giveUp();
    client.end({ timeout: 0 }).catch(() => undefined);
  });
  try {
    await Promise.race([client.unsafe('LISTEN inkwell_comments'), deadline.passed]);
  } finally {
    deadline.end();
  }
}
