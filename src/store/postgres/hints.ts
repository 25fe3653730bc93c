/**
 * Hints between nodes: LISTEN on a connection of its own, and NOTIFY. A hint may get lost; nothing
 * depends on it but the time that a comment takes to another node.
 */

import { toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { isOutOfReach } from './faults.ts';
import { type Client, type Connect, createDeadline, type Pool } from './pool.ts';

export interface Hints {
  /** Listens from now on, and again whenever the connection is lost. */
  start(): Promise<void>;
  /** Tells the other nodes. Never rejects, never waits. */
  tell(): void;
  /** True while this node listens. */
  areHeard(): boolean;
  close(): Promise<void>;
}

/** Where a node can only look for itself. */
const noHints: Hints = {
  start: () => Promise.resolve(),
  tell: () => undefined,
  areHeard: () => false,
  close: () => Promise.resolve(),
};

export interface HintDeps {
  readonly pool: Pool;
  /** Undefined where nothing would be heard. */
  readonly connect: Connect | undefined;
  readonly log: Log;
  readonly nodeId: string;
  readonly heard: (fromNode: string) => void;
  /** After the first connection and after every later one: hints may have been missed. */
  readonly connected: () => void;
}

/** A connection may be dead without an error: it is checked this often. */
const checkMilliseconds = 5_000;
const patienceMilliseconds = 5_000;
const retryMilliseconds = 200;

export function createHints(deps: HintDeps): Hints {
  const { pool, connect, log, nodeId, heard, connected } = deps;
  if (connect === undefined) return noHints;
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
  /** The log has a line that this node does not listen. */
  let logged = false;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;
  let closed = false;

  async function check(): Promise<void> {
    try {
      await listen(client, () => {
        connect?.passOver(client);
        client = newClient();
      });
      if (!listening) {
        listening = true;
        logged = false;
        connected();
      }
    } catch (error) {
      // Logged once: it is tried again and again, and the pool logs that the database is away.
      if (!logged) log('warn', 'database sends no hints', { reason: toReason(error) });
      logged = true;
      listening = false;
      if (isOutOfReach(error) && connect?.passOver(client) === true) {
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
    start: () => (checking = check()),
    areHeard: () => listening,
    tell() {
      pool
        .write((sql) => sql`SELECT pg_notify('inkwell_comments', ${nodeId})`)
        .catch(() => undefined);
    },
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
