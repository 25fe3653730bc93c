/**
 * Subscriptions of all transports (WebSocket, server-sent events). Identical subscriptions
 * form a group: an event is executed once and serialised once for all of its members (R30). A
 * group opens its source with the first member and ends with the last one.
 */

import { createHash } from 'node:crypto';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Engine, ReadyOperation } from '../engine.ts';
import type { GraphqlWatch } from '../watch.ts';
import { createEventQueue } from './event-queue.ts';
import { Group } from './group.ts';
import type { Member } from './member.ts';

export interface Subscriptions {
  /**
   * Takes part from now on; gives back how to leave, which is quick and may be called twice.
   * Equal are operations with the same document, operation name and variables. Throws
   * `overloaded` where one more different subscription is one too many.
   */
  join(operation: ReadyOperation, member: Member): () => void;
  /** Ends every subscription and takes no more. */
  close(): void;
  /** Groups and members at this moment. */
  count(): { readonly groups: number; readonly members: number };
}

export interface SubscriptionsDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'createBudget' | 'scheduler'>;
  /** Different subscriptions at a time: each is executed once per event. */
  readonly distinctMax: number;
  /** Holds what groups keep, and events that wait for slow members. */
  readonly pool: Pick<MemoryPool, 'open'>;
  readonly log: Log;
  readonly watch?: GraphqlWatch | undefined;
}

export function createSubscriptions(deps: SubscriptionsDeps): Subscriptions {
  const { engine, distinctMax, pool, log, watch } = deps;
  const groups = new Map<string, Group>();
  const queue = createEventQueue(engine.scheduler);
  let closed = false;
  let opened = 0;

  const open = (key: string, operation: ReadyOperation): Group => {
    const kept = pool.open();
    if (groups.size >= distinctMax || !kept.grow(bytesOf(operation))) {
      throw new AppError('overloaded', 'Too many different subscriptions are open.');
    }
    const budget = engine.createBudget();
    const forget = (): void => {
      groups.delete(key);
      budget.release();
      kept.release();
    };
    const group = new Group({ queue, pool, budget, forget, watch });
    groups.set(key, group);
    opened += 1;
    // No token: what all members see must not depend on which of them came first.
    const scope = { requestId: `subscription-${opened}`, viewer: () => undefined, budget };
    group.read(engine.subscribe(operation, scope), (reason) => {
      log('error', 'subscription failed', { requestId: scope.requestId, reason });
    });
    return group;
  };

  return {
    join(operation, member) {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const key = toKey(operation);
      const group = groups.get(key) ?? open(key, operation);
      group.join(member);
      return () => group.leave(member);
    },
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

/** The same for equal subscriptions, and short. */
function toKey({ document, operationName, variables }: ReadyOperation): string {
  const text = document.loc?.source.body;
  const parts = JSON.stringify([text, operationName, variables ?? {}]);
  return createHash('sha256').update(parts).digest('base64');
}

/** What a token of a document takes in memory, parsed. */
const tokenBytes = 400;

/** About what a group keeps of its operation: the text and what it was parsed into. */
function bytesOf({ document }: ReadyOperation): number {
  const length = document.loc?.source.body.length ?? 0;
  return length + (document.tokenCount ?? 0) * tokenBytes;
}
