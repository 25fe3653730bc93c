/**
 * Subscriptions of all transports (WebSocket, server-sent events). Equal subscriptions form a
 * group, so that an event is executed and serialised once for all subscribers (R30). A group opens
 * its source with its first subscriber and ends with its last.
 *
 * Of the groups that are free, one connection opens at most an eighth. So no few connections take
 * them all: of 1,000, ten sockets that open as many as they may leave 300.
 */

import { hash } from 'node:crypto';
import { print } from 'graphql';
import type { Access } from '../../auth/access.ts';
import { AppError } from '../../errors.ts';
import { type ConnectionMemory, type MemoryPool, poolIsFull } from '../../memory-pool.ts';
import { createScheduler } from '../../scheduler.ts';
import type { Account } from '../../store/model.ts';
import type { Comments } from '../../store/store.ts';
import { bytesOfDocument } from '../documents/documents.ts';
import type { Operation } from '../engine.ts';
import { createEventLine } from './event-line.ts';
import { type EventDeps, Group, type Member } from './group.ts';
import { Resumption } from './resumption.ts';
import { createRotation } from '../rotation.ts';
import type { Subscriber } from './subscriber.ts';
import { createViewers } from './viewers.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

interface SubscriptionsDeps extends Omit<EventDeps, 'line' | 'reading' | 'scheduler'> {
  /** Limit on different subscriptions: each is executed once per event. */
  readonly distinctMax: number;
  /** Accounts for the operations of groups, and for events queued for slow clients. */
  readonly pool: Pick<MemoryPool, 'open' | 'isOver'>;
  readonly ready?: Comments['ready'] | undefined;
  readonly currentOf: Access['currentOf'];
}

export function createSubscriptions(deps: SubscriptionsDeps) {
  const { engine, metrics } = deps;
  const line = createEventLine(deps.pool);
  // Events have turns of their own: they must not wait behind what others ask for.
  const scheduler = createScheduler();
  const eventDeps = { ...deps, line, scheduler, reading: createRotation(readingMax) };
  const { groups, open } = createGroups(eventDeps, deps.distinctMax);
  const viewers = createViewers(deps.currentOf);
  let closed = false;

  return {
    /**
     * Adds a subscriber, which gets events from now on, after those that it has missed if the
     * operation resumes. Returns a function that removes it, which is fast and may be called twice.
     * Operations are equal if document, operation name and variables are, without the arguments
     * that are each subscriber's own. Throws `overloaded` if too many different subscriptions are
     * active. With an account, the subscription ends when the account was removed or has another
     * password, and follows its roles.
     */
    join(operation: Operation, subscriber: Subscriber, account?: Account): () => void {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const startedAt = performance.now();
      const key = toKey(operation);
      const group = groups.get(key) ?? open(operation, key, subscriber);
      const { postId, after } = operation.own ?? {};
      const member: Member = { subscriber, reader: engine.readerOf(account), postId };
      group.members.add(member);
      if (after !== undefined) {
        const resumption = new Resumption({ subscriber, member, after, group }, eventDeps);
        member.subscriber = resumption;
        void resumption.run();
      }
      metrics?.operation('subscription', 'ok', performance.now() - startedAt);
      const update = (current: Account): void => void (member.reader = engine.readerOf(current));
      if (account) viewers.add(subscriber, account, update);
      return () => {
        viewers.remove(subscriber);
        group.leave(member);
      };
    },
    /**
     * Undefined, or resolves when every subscriber gets all comments that are stored from then on.
     * A response that is sent after that shows the client that its earlier subscriptions have
     * begun. Rejects as a read does.
     */
    ready: () => deps.ready?.(),
    /** Ends every subscription, and refuses new ones. Subscribers are told by their transport. */
    close(): void {
      closed = true;
      viewers.close();
      for (const group of groups.values()) group.end();
    },
    /** The present numbers of groups and subscribers. */
    count(): { readonly groups: number; readonly subscribers: number } {
      let subscribers = 0;
      for (const group of groups.values()) subscribers += group.members.size;
      return { groups: groups.size, subscribers };
    },
  };
}

function createGroups(deps: EventDeps, distinctMax: number) {
  const groups = new Map<string, Group>();
  /** The groups that a connection has opened. */
  const openedBy = new WeakMap<ConnectionMemory, number>();
  let opened = 0;

  /** The connection of the first subscriber holds the group, until the group ends. */
  const hold = (memory: ConnectionMemory, operation: Operation): (() => void) => {
    const own = openedBy.get(memory) ?? 0;
    if (own >= (distinctMax - groups.size) * connectionShare) {
      const scope = own === 0 ? 'open' : 'opened by this connection';
      throw new AppError('overloaded', `Too many different subscriptions are ${scope}.`);
    }
    const reservation = memory.openLasting();
    if (!reservation.grow(bytesOf(operation))) throw poolIsFull();
    openedBy.set(memory, own + 1);
    return () => {
      openedBy.set(memory, (openedBy.get(memory) ?? 1) - 1);
      reservation.release();
    };
  };
  return {
    groups,
    open: (operation: Operation, key: string, { memory }: Subscriber): Group => {
      const release = hold(memory, operation);
      opened += 1;
      const forget = (): void => {
        groups.delete(key);
        release();
      };
      const group = new Group(operation, `subscription-${opened}`, { ...deps, forget });
      groups.set(key, group);
      return group;
    },
  };
}

/** A short key, the same for equal subscriptions. */
function toKey({ document, operationName, variables }: Operation): string {
  const parts = JSON.stringify([print(document), operationName, variables]);
  return hash('sha256', parts, 'base64');
}

/** Approximate memory of a value in an object, in bytes. */
const valueBytes = 67;

/** The approximate memory of a group. */
function bytesOf({ document, variables = {} }: Operation): number {
  const textBytes = 2 * JSON.stringify(variables).length;
  return bytesOfDocument(document) + textBytes + valueBytes * Object.keys(variables).length;
}

/** Of the groups that are free, for one connection. */
const connectionShare = 1 / 8;
/** Subscribers that read a page of what they have missed at the same time. */
const readingMax = 16;
