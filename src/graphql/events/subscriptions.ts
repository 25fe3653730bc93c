/**
 * Subscriptions of all transports (WebSocket, server-sent events). Equal subscriptions form a
 * group, so that an event is executed and serialised once for all members (R30). A group opens its
 * source with its first member and ends with its last.
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
import { Group } from './group.ts';
import type { Member } from './member.ts';

export interface Subscriptions {
  /**
   * Adds a member, which gets events from now on. Returns a function that removes it, which is fast
   * and may be called twice. Operations are equal if document, operation name and variables are.
   * Throws `overloaded` if too many different subscriptions are active.
   */
  join(operation: ReadyOperation, member: Member): () => void;
  /**
   * Undefined, or settles when every member gets all comments that are stored from then on. What a
   * client is told after that shows it that its earlier subscriptions run. Rejects as a read does.
   */
  running(): Promise<unknown> | undefined;
  /** Ends every subscription and refuses new ones. */
  close(): void;
  /** The present numbers of groups and members. */
  count(): { readonly groups: number; readonly members: number };
}

export interface SubscriptionsDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'scheduler'>;
  /** Limit on different subscriptions: each is executed once per event. */
  readonly distinctMax: number;
  /** Accounts for the operations of groups, and for events queued for slow members. */
  readonly pool: Pick<MemoryPool, 'open'>;
  readonly log: Log;
  readonly placed?: Store['placed'] | undefined;
  readonly metrics?: GraphqlMetrics | undefined;
}

export function createSubscriptions(deps: SubscriptionsDeps): Subscriptions {
  const { engine, distinctMax, pool, log, metrics } = deps;
  const groups = new Map<string, Group>();
  const queue = createEventQueue(engine.scheduler);
  let closed = false;
  let opened = 0;

  const open = (key: string, operation: ReadyOperation): Group => {
    const kept = pool.open();
    if (groups.size >= distinctMax || !kept.grow(bytesOfDocument(operation.document))) {
      throw new AppError('overloaded', 'Too many different subscriptions are open.');
    }
    const forget = (): void => {
      groups.delete(key);
      kept.release();
    };
    const group = new Group({ queue, pool, forget, metrics });
    groups.set(key, group);
    opened += 1;
    // Without a token: the events of a group must not depend on its first member.
    const scope = { requestId: `subscription-${opened}`, viewer: () => undefined };
    group.read(engine.subscribe(operation, scope), (reason) => {
      log('error', 'subscription failed', { requestId: scope.requestId, reason });
    });
    return group;
  };

  return {
    join(operation, member) {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const startedAt = performance.now();
      const key = toKey(operation);
      const group = groups.get(key) ?? open(key, operation);
      group.join(member);
      metrics?.operation('subscription', 'ok', performance.now() - startedAt);
      return () => group.leave(member);
    },
    running: () => deps.placed?.(),
    close() {
      closed = true;
      for (const group of groups.values()) group.end({ kind: 'closing' });
    },
    count() {
      let members = 0;
      for (const group of groups.values()) members += group.size;
      return { groups: groups.size, members };
    },
  };
}

/** A short key, the same for equal subscriptions. */
function toKey({ document, operationName, variables }: ReadyOperation): string {
  const text = document.loc?.source.body;
  const parts = JSON.stringify([text, operationName, variables ?? {}]);
  return createHash('sha256').update(parts).digest('base64');
}
