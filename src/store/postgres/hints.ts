/**
 * Hints between nodes: LISTEN on a connection of its own, and NOTIFY. A hint may get lost; nothing
 * depends on it but the time that a comment takes to another node.
 */

import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isOutOfReach } from './faults.ts';
import { type Client, type Connect, createDeadline, type Pool } from './pool.ts';

export interface Hints {
  /** Tells the other nodes. Never rejects, never waits. */
  tell(): void;
  /** From now on, on a connection of its own, which is made again whenever it is lost. */
  listen(listener: HintListener): Listening;
}

export interface HintListener {
  readonly heard: (fromNode: string) => void;
  /** After the first connection and after every later one: hints may have been missed. */
  readonly connected: () => void;
}

export interface Listening {
  /** Settles when it listens, or has failed for the first time. */
  readonly begun: Promise<void>;
  /** True while hints arrive. */
  areHeard(): boolean;
  close(): Promise<void>;
}

/** Where a node can only look for itself. */
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
  /** Undefined where nothing would be heard. */
  readonly connect: Connect | undefined;
  readonly log: Log;
  readonly nodeId: string;
}

/** A connection may be dead without an error: it is checked this often. */
const checkMilliseconds = 5_000;
const patienceMilliseconds = 5_000;
const retryMilliseconds = 200;

export function createHints({ pool, connect, log, nodeId }: HintDeps): Hints {
  if (connect === undefined) return noHints;
  /** The log has a line that this node does not listen. */
  let logged = false;
  const report = (error?: unknown): void => {
    // Logged once: it is tried again and again, and the pool logs that the database is away.
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

/** `report` gets what failed; nothing when this node listens again. */
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

  /** One check is waited for at a time. */
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
 * LISTEN a second time changes nothing: it asks whether the connection lives. Where it says
 * nothing it is ended, and `giveUp` puts another one in its place.
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
