/**
 * Subscriptions of all transports (WebSocket, server-sent events). Equal subscriptions form a
 * group, so that an event is executed and serialised once for all subscribers (R30). A group opens
 * its source with its first subscriber and ends with its last.
 */

import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type DocumentNode, print, visit } from 'graphql';
import type { Access } from '../../auth/access.ts';
import { AppError, toStack } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Topic } from '../../domain/comments.ts';
import { mayRead, type Reader } from '../../domain/readers.ts';
import type { Account, Comment, Post } from '../../store/model.ts';
import { createScheduler, type Scheduler } from '../../scheduler.ts';
import type { Comments, Store } from '../../store/store.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import { bytesOfDocument } from '../documents/documents.ts';
import type { Resume } from '../documents/resuming.ts';
import type { Engine, Operation, Subscription } from '../engine.ts';
import { isOutage, RequestError, toErrors, toMasked } from '../errors.ts';
import { createGate, type Gate } from '../permits.ts';
import { createEventLine, type EventLine } from './event-line.ts';
import { Resumption, retryMilliseconds } from './resumption.ts';
import { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';
import { createViewers } from './viewers.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

interface SubscriptionsDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'readerOf'>;
  /** Limit on different subscriptions: each is executed once per event. */
  readonly distinctMax: number;
  /** Accounts for the operations of groups, and for events queued for slow clients. */
  readonly pool: Pick<MemoryPool, 'open' | 'isOver'>;
  readonly log: Log;
  readonly store: Pick<Store, 'comments' | 'posts'>;
  readonly commentAdded: Pick<Topic<Comment>, 'position'>;
  readonly ready?: Comments['ready'] | undefined;
  readonly isCurrent: Access['isCurrent'];
  readonly metrics?: GraphqlMetrics | undefined;
}

export function createSubscriptions(deps: SubscriptionsDeps) {
  const { engine, distinctMax, metrics } = deps;
  const groups = new Map<string, Group>();
  const groupDeps = toGroupDeps(deps);
  const viewers = createViewers(deps.isCurrent);
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
     * too many different subscriptions are active. With an account, the subscription ends when it
     * is not current any more.
     */
    join(operation: Operation, subscriber: Subscriber, account?: Account): () => void {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const startedAt = performance.now();
      const key = toKey(operation);
      const group = groups.get(key) ?? open(operation, key, subscriber);
      const member = group.add(subscriber, engine.readerOf(account), operation.resume);
      metrics?.operation('subscription', 'ok', performance.now() - startedAt);
      if (account) viewers.add(subscriber, account);
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

/** Characters of a field beside the content: its name, an id or a date. */
const fieldLength = 64;
/** Subscribers that read a page of what they have missed at the same time. */
const scansMax = 16;
/** Subscribers served in one work. */
const subscribersAtOnce = 64;

interface GroupDeps extends SubscriptionsDeps {
  readonly line: EventLine;
  readonly scheduler: Scheduler;
  readonly gate: Gate;
}

/** Events have turns of their own: they must not wait behind what others ask for. */
function toGroupDeps(deps: SubscriptionsDeps): GroupDeps {
  const [line, gate] = [createEventLine(deps.pool), createGate(scansMax)];
  return { ...deps, line, gate, scheduler: createScheduler() };
}

/** Equal subscriptions: reads the source, executes each event once and delivers it. */
class Group {
  /** With who asks: an event has no viewer, but some get it and some do not (R44). */
  readonly subscribers = new Map<Subscriber, Reader | undefined>();
  /** The source, with which the subscribers that resume execute events too. */
  opened: Promise<Subscription> | undefined;
  readonly #deps: GroupDeps;
  /** Fields of the document: an event is at most so many times as long as its comment. */
  readonly #fields: number;
  /** Called once, when the group ends. */
  readonly #forget: () => void;
  #events: Subscription['events'] | undefined;
  /** When the last event was delivered. */
  #turn = 0;
  #ended = false;

  constructor(deps: GroupDeps, fields: number, forget: () => void) {
    this.#deps = deps;
    this.#fields = fields;
    this.#forget = forget;
  }

  /** Returns what has to leave: the subscriber, or what resumes for it. */
  add(subscriber: Subscriber, reader: Reader | undefined, resume?: Resume): Subscriber {
    const resumed = resume && { subscriber, reader, resume, group: this };
    const member = resumed ? new Resumption(resumed, this.#deps) : subscriber;
    this.subscribers.set(member, reader);
    if (member instanceof Resumption) void member.run();
    return member;
  }

  leave(subscriber: Subscriber): void {
    if (this.subscribers.delete(subscriber) && this.subscribers.size === 0) this.end();
  }

  /** Reads the source until the group ends. Never rejects: internal errors are logged. */
  async read(source: Promise<Subscription>, requestId: string): Promise<void> {
    this.opened = source;
    try {
      this.end(await this.#read(await source));
    } catch (error) {
      if (error instanceof RequestError) return this.end({ kind: 'refused', errors: error.errors });
      const { log, metrics } = this.#deps;
      const isOverflow = error instanceof AppError && error.code === 'overloaded';
      if (!isOverflow) log('error', 'subscription failed', { requestId, reason: toStack(error) });
      const reason = isOverflow ? 'overflow' : 'failed';
      this.subscribers.forEach(() => metrics?.subscriberDropped(reason));
      this.end(
        isOverflow ? { kind: 'overflow' } : { kind: 'refused', errors: [toMasked(requestId)] },
      );
    }
  }

  /** Without an ending the subscribers are told nothing: they have left, or are being closed. */
  end(ending?: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forget();
    this.#closeSource();
    const subscribers = Array.from(this.subscribers.keys());
    this.subscribers.clear();
    if (ending !== undefined) subscribers.forEach((subscriber) => subscriber.end(ending));
  }

  async #read({ events, toJson }: Subscription): Promise<Ending> {
    this.#events = events;
    // The last subscriber may have left while the source was opening.
    if (this.#ended) this.#closeSource();
    for (;;) {
      const event = await events.next();
      if (event.done === true || this.#ended) return { kind: 'complete' };
      const { value } = event;
      const { position } = events;
      await this.execute(toJson, value, (json) => this.#deliver(json, value, position));
    }
  }

  /** Executes an event in its turn, unless the group has ended, and calls `deliver`. */
  execute(
    toJson: Subscription['toJson'],
    comment: Comment,
    deliver: (json: Buffer) => void | Promise<void>,
  ): Promise<void> {
    const { line, scheduler } = this.#deps;
    return line((comment.content.length + fieldLength) * this.#fields, async () => {
      if (this.#ended) return;
      const json = await scheduler.run(() => toJson(comment));
      await deliver(Buffer.from(json));
    });
  }

  /** Subscribers that join during the delivery do not get the event. */
  async #deliver(json: Buffer, comment: Comment, position: number): Promise<void> {
    const { engine, pool, metrics, scheduler } = this.#deps;
    const isSameIteration = scheduler.turns === this.#turn;
    const event = new SharedEvent(json, pool, { id: comment.id, position, isSameIteration });
    this.#turn = scheduler.turns;
    const subscribers = Array.from(this.subscribers);
    const post = engine.readerOf() && (await this.#findPost(comment));
    for (let at = 0; at < subscribers.length; at += subscribersAtOnce) {
      await scheduler.run(() => {
        for (const [subscriber, reader] of subscribers.slice(at, at + subscribersAtOnce)) {
          const isTaken = !mayRead(reader, post) || subscriber.next(event);
          if (!isTaken) metrics?.subscriberDropped('slow_consumer');
        }
      });
    }
  }

  /** Finds the post of a comment as it is now. While the store is away, it is asked again. */
  async #findPost({ postId }: Comment): Promise<Post | undefined> {
    while (!this.#ended) {
      try {
        return await this.#deps.store.posts.find(postId);
      } catch (error) {
        if (!toErrors(error, this.#deps.log, 'event').every(isOutage)) throw error;
        await delay(retryMilliseconds, undefined, { ref: false });
      }
    }
    return undefined;
  }

  /** Not awaited: `return()` settles the pending `next()`, which ends the reading. */
  #closeSource(): void {
    this.#events?.return?.().catch(() => undefined);
    this.#events = undefined;
  }
}
