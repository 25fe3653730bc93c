/**
 * Hints between nodes: LISTEN on a connection of its own, and NOTIFY. A hint may get lost; nothing
 * depends on it but the time that a comment takes to another node.
 */

import type { Log } from '../log.ts';
import {
  type Client,
  type Connect,
  createDeadline,
  isAway,
  type Pool,
  toStoreError,
} from './postgres-pool.ts';

export interface Hints {
  /** Listens from now on, and again whenever the connection is lost. */
  start(): Promise<void>;
  /** Tells the other nodes. Never rejects, never waits. */
  tell(): void;
  /** True while this node listens. */
  areHeard(): boolean;
  close(): Promise<void>;
}

export interface HintDeps {
  readonly pool: Pool;
  readonly connect: Connect;
  readonly log: Log;
  readonly nodeId: string;
  readonly heard: (fromNode: string) => void;
  /** After the first connection and after every later one: hints may have been missed. */
  readonly connected: () => Promise<void>;
}

/** A connection may be dead without a word: so often it is asked. */
const checkMilliseconds = 5_000;
const patienceMilliseconds = 5_000;
const retryMilliseconds = 200;

export function createHints(deps: HintDeps): Hints {
  const { pool, connect, log, nodeId, heard, connected } = deps;
  const newClient = (): Client =>
    connect({
      connectionsMax: 1,
      statementSeconds: 5,
      heard: (_channel, from) => heard(from),
      closed: () => {
        if (!listening || closed) return;
        listening = false;
        clearTimeout(timer);
        timer = setTimeout(() => void checkAndRepeat(), retryMilliseconds);
      },
    });
  let client = newClient();
  let listening = false;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;
  let closed = false;

  /** LISTEN a second time changes nothing: it asks whether the connection lives. */
  async function check(): Promise<void> {
    const asked = client;
    const deadline = createDeadline(patienceMilliseconds, () => {
      client = newClient();
      asked.end({ timeout: 0 }).catch(() => undefined);
    });
    try {
      await Promise.race([asked.unsafe('LISTEN inkwell_comments'), deadline.passed]);
      if (!listening) {
        listening = true;
        await connected();
      }
    } catch (error) {
      if (listening || !isAway(toStoreError(error))) {
        log('warn', 'database sends no hints', { reason: toReason(error) });
      }
      listening = false;
    } finally {
      deadline.end();
    }
  }

  function checkAndRepeat(): Promise<void> {
    checking = check().finally(() => {
      if (closed) return;
      const wait = listening ? checkMilliseconds : retryMilliseconds;
      timer = setTimeout(() => void checkAndRepeat(), wait);
    });
    return checking;
  }

  return {
    start: checkAndRepeat,
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

function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
