/**
 * Subscriptions of all transports (WebSocket, server-sent events). Equal subscriptions form a
 * group, so that an event is executed and serialised once for all subscribers (R30). A group opens
 * its source with its first subscriber and ends with its last.
 */

import { createHash } from 'node:crypto';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import { bytesOfDocument } from '../documents/documents.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import type { Store } from '../../store/store.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import { createEventQueue } from './event-queue.ts';
import { SubscriptionGroup } from './group.ts';
import type { Subscriber } from './subscriber.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

export interface SubscriptionsDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'scheduler'>;
  /** Limit on different subscriptions: each is executed once per event. */
  readonly distinctMax: number;
  /** Accounts for the operations of groups, and for events queued for slow clients. */
  readonly pool: Pick<MemoryPool, 'open' | 'isOver'>;
  readonly log: Log;
  readonly placed?: Store['placed'] | undefined;
  readonly metrics?: GraphqlMetrics | undefined;
}

export function createSubscriptions(deps: SubscriptionsDeps) {
  const { engine, distinctMax, pool, log, metrics } = deps;
  const { scheduler } = engine;
  const groups = new Map<string, SubscriptionGroup>();
  const shared = { scheduler, pool, metrics, queue: createEventQueue(scheduler, pool) };
  let closed = false;
  let opened = 0;

  const open = (operation: ReadyOperation, key: string, bytes: number): SubscriptionGroup => {
    const reservation = pool.open();
    if (groups.size >= distinctMax || !reservation.grow(bytes)) {
      throw new AppError('overloaded', 'Too many different subscriptions are open.');
    }
    const group = new SubscriptionGroup(shared, () => {
      groups.delete(key);
      reservation.release();
    });
    groups.set(key, group);
    opened += 1;
    const requestId = `subscription-${opened}`;
    // Without a token: the events of a group must not depend on its first subscriber.
    const source = engine.subscribe(operation, { requestId, viewer: () => undefined });
    void group.read(source, (reason) => log('error', 'subscription failed', { requestId, reason }));
    return group;
  };

  return {
    /**
     * Adds a subscriber, which gets events from now on. Returns a function that removes it, which
     * is fast and may be called twice. Operations are equal if document, operation name and
     * variables are. Throws `overloaded` if too many different subscriptions are active.
     */
    join(operation: ReadyOperation, subscriber: Subscriber): () => void {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const startedAt = performance.now();
      const { key, bytes } = toKey(operation);
      const group = groups.get(key) ?? open(operation, key, bytes);
      group.join(subscriber);
      metrics?.operation('subscription', 'ok', performance.now() - startedAt);
      return () => group.leave(subscriber);
    },
    /**
     * Undefined, or settles when every subscriber gets all comments that are stored from then on.
     * What a client is told after that shows it that its earlier subscriptions run. Rejects as a
     * read does.
     */
    running: () => deps.placed?.(),
    /** Ends every subscription, and refuses new ones. Subscribers are told by their transport. */
    close(): void {
      closed = true;
      for (const group of groups.values()) group.end();
    },
    /** The present numbers of groups and subscribers. */
    count(): { readonly groups: number; readonly subscribers: number } {
      let subscribers = 0;
      for (const group of groups.values()) subscribers += group.size;
      return { groups: groups.size, subscribers };
    },
  };
}

/** JSON of values takes up to so many times its length when it is parsed: an empty object does. */
const parsedBytesPerByte = 22;

/** A short key, the same for equal subscriptions; and the approximate memory of the operation. */
function toKey({ document, operationName, variables = {} }: ReadyOperation): {
  readonly key: string;
  readonly bytes: number;
} {
  const values = JSON.stringify(variables);
  const parts = JSON.stringify([document.loc?.source.body, operationName, values]);
  const key = createHash('sha256').update(parts).digest('base64');
  return { key, bytes: bytesOfDocument(document) + parsedBytesPerByte * values.length };
}
