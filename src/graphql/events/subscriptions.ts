/**
 * Subscriptions of all transports (WebSocket, server-sent events). Equal subscriptions form a
 * group, so that an event is executed and serialised once for all subscribers (R30). A group opens
 * its source with its first subscriber and ends with its last.
 */

import { hash } from 'node:crypto';
import { type DocumentNode, print, visit } from 'graphql';
import type { Access } from '../../auth/access.ts';
import type { Topic } from '../../domain/comments.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import { createScheduler } from '../../scheduler.ts';
import type { Account, Comment } from '../../store/model.ts';
import type { Comments, Store } from '../../store/store.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import { bytesOfDocument } from '../documents/documents.ts';
import type { Resume } from '../documents/resuming.ts';
import type { Engine, Operation } from '../engine.ts';
import { createGate } from '../permits.ts';
import { createEventLine } from './event-line.ts';
import { Group, type GroupDeps, type Viewer } from './group.ts';
import { createLooks } from './looks.ts';
import { type Resumed, Resumption, type ResumptionDeps } from './resumption.ts';
import type { Subscriber } from './subscriber.ts';
import { createViewers } from './viewers.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

interface SubscriptionsDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'readerOf' | 'hasOwners'>;
  /** Limit on different subscriptions: each is executed once per event. */
  readonly distinctMax: number;
  /** Accounts for the operations of groups, and for events queued for slow clients. */
  readonly pool: Pick<MemoryPool, 'open' | 'isOver'>;
  readonly log: Log;
  readonly store: Pick<Store, 'comments' | 'posts' | 'changes'>;
  readonly commentAdded: Pick<Topic<Comment>, 'position'>;
  readonly ready?: Comments['ready'] | undefined;
  readonly currentOf: Access['currentOf'];
  readonly metrics?: GraphqlMetrics | undefined;
}

export function createSubscriptions(deps: SubscriptionsDeps) {
  const { engine, distinctMax, metrics } = deps;
  const groups = new Map<string, Group>();
  const groupDeps = toGroupDeps(deps);
  const viewers = createViewers(deps.currentOf);
  let closed = false;
  let opened = 0;

  const open = (operation: Operation, key: string, { memory }: Subscriber): Group => {
    // The connection of the first subscriber holds the group, until the group ends.
    const reservation = memory.openLasting();
    if (groups.size >= distinctMax || !reservation.grow(bytesOf(operation))) {
      throw new AppError('overloaded', 'Too many different subscriptions are open.');
    }
    const group = new Group(groupDeps, countFields(operation.document), () => {
      groups.delete(key);
      reservation.release();
    });
    groups.set(key, group);
    opened += 1;
    const requestId = `subscription-${opened}`;
    // Without a token: the events of a group must not depend on its first subscriber.
    const source = engine.subscribe(operation, { requestId, viewer: () => undefined });
    void group.read(source, requestId);
    return group;
  };

  return {
    /**
     * Adds a subscriber, which gets events from now on, after those that it has missed if the
     * operation resumes. Returns a function that removes it, which is fast and may be called twice.
     * Operations are equal if document, operation name and variables are. Throws `overloaded` if
     * too many different subscriptions are active. With an account, the subscription ends when the
     * account was removed or has another password, and follows its roles.
     */
    join(operation: Operation, subscriber: Subscriber, account?: Account): () => void {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const startedAt = performance.now();
      const key = toKey(operation);
      const group = groups.get(key) ?? open(operation, key, subscriber);
      const viewer: Viewer = { reader: engine.readerOf(account) };
      const member = enter(group, { subscriber, viewer, resume: operation.resume }, groupDeps);
      metrics?.operation('subscription', 'ok', performance.now() - startedAt);
      const update = (current: Account): void => void (viewer.reader = engine.readerOf(current));
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
      for (const group of groups.values()) subscribers += group.subscribers.size;
      return { groups: groups.size, subscribers };
    },
  };
}

interface Entering extends Pick<Resumed, 'subscriber' | 'viewer'> {
  readonly resume: Resume | undefined;
}

/** Returns what is in the group now: the subscriber, or what resumes for it. */
function enter(
  group: Group,
  { subscriber, viewer, resume }: Entering,
  deps: ResumptionDeps,
): Subscriber {
  const resumption = resume && new Resumption({ subscriber, viewer, resume, group }, deps);
  const member = resumption ?? subscriber;
  group.subscribers.set(member, [member, viewer]);
  void resumption?.run();
  return member;
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

/** A comment has no nested objects: each field puts one text of it into the event at most. */
function countFields(document: DocumentNode): number {
  let fields = 0;
  visit(document, { Field: () => void (fields += 1) });
  return fields;
}

/** Subscribers that read a page of what they have missed at the same time. */
const scansMax = 16;

/** Events have turns of their own: they must not wait behind what others ask for. */
function toGroupDeps(deps: SubscriptionsDeps): GroupDeps & ResumptionDeps {
  const [line, gate] = [createEventLine(deps.pool), createGate(scansMax)];
  return { ...deps, line, gate, looks: createLooks(deps.store), scheduler: createScheduler() };
}
