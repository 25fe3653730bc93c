/**
 * Subscriptions of all transports (WebSocket, server-sent events). Equal subscriptions form a
 * group, so that an event is executed and serialised once for all subscribers (R30). A group opens
 * its source with its first subscriber and ends with its last.
 */

import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Store } from '../../store/store.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import { bytesOfDocument } from '../documents/documents.ts';
import type { Engine, Operation, Subscription } from '../engine.ts';
import { maskedError, RequestError } from '../errors.ts';
import { type Ending, SharedEvent, type Subscriber } from './subscriber.ts';

export type Subscriptions = ReturnType<typeof createSubscriptions>;

interface SubscriptionsDeps {
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
  const { engine, distinctMax, metrics } = deps;
  const groups = new Map<string, Group>();
  const queue = createEventQueue(deps);
  let closed = false;
  let opened = 0;

  const open = (operation: Operation, key: string, { memory }: Subscriber): Group => {
    // Of its first subscriber, for as long as there is any.
    const room = memory.openLasting();
    if (groups.size >= distinctMax || !room.grow(bytesOf(operation))) {
      throw new AppError('overloaded', 'Too many different subscriptions are open.');
    }
    const group = new Group(deps, queue, () => {
      groups.delete(key);
      room.release();
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
     * Adds a subscriber, which gets events from now on. Returns a function that removes it, which
     * is fast and may be called twice. Operations are equal if document, operation name and
     * variables are. Throws `overloaded` if too many different subscriptions are active.
     */
    join(operation: Operation, subscriber: Subscriber): () => void {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const startedAt = performance.now();
      const key = toKey(operation);
      const group = groups.get(key) ?? open(operation, key, subscriber);
      group.subscribers.add(subscriber);
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
      for (const group of groups.values()) subscribers += group.subscribers.size;
      return { groups: groups.size, subscribers };
    },
  };
}

/** A short key, the same for equal subscriptions. */
function toKey({ document, operationName, variables }: Operation): string {
  const parts = JSON.stringify([document.loc?.source.body, operationName, variables]);
  return hash('sha256', parts, 'base64');
}

/** Approximate memory of a value in an object, in bytes. */
const valueBytes = 67;

/** The approximate memory of a group. */
function bytesOf({ document, variables = {} }: Operation): number {
  const textBytes = 2 * JSON.stringify(variables).length;
  return bytesOfDocument(document) + textBytes + valueBytes * Object.keys(variables).length;
}

/** Subscribers served before the time slice is checked. */
const subscribersAtOnce = 64;
/** A group whose last event was larger than this many bytes lets other groups go first. */
const lightBytesMax = 65_536;

/** Equal subscriptions: reads the source, executes each event once and delivers it. */
class Group {
  readonly subscribers = new Set<Subscriber>();
  readonly #deps: SubscriptionsDeps;
  readonly #queue: EventQueue;
  /** Called once, when the group ends. */
  readonly #forget: () => void;
  #events: AsyncIterator<unknown> | undefined;
  #isHeavy = false;
  /** When the last event was delivered. */
  #turn = 0;
  #ended = false;

  constructor(deps: SubscriptionsDeps, queue: EventQueue, forget: () => void) {
    this.#deps = deps;
    this.#queue = queue;
    this.#forget = forget;
  }

  leave(subscriber: Subscriber): void {
    if (this.subscribers.delete(subscriber) && this.subscribers.size === 0) this.end();
  }

  /** Reads the source until the group ends. Never rejects: internal errors are logged. */
  async read(source: Promise<Subscription>, requestId: string): Promise<void> {
    try {
      this.end(await this.#read(await source));
    } catch (error) {
      if (error instanceof RequestError) return this.end({ kind: 'refused', errors: error.errors });
      const { log, metrics } = this.#deps;
      const isOverrun = error instanceof AppError && error.code === 'overloaded';
      if (!isOverrun) log('error', 'subscription failed', { requestId, reason: String(error) });
      const reason = isOverrun ? 'overrun' : 'failed';
      this.subscribers.forEach(() => metrics?.subscriberDropped(reason));
      this.end(isOverrun ? { kind: 'overrun' } : { kind: 'refused', errors: [maskedError] });
    }
  }

  /** Without an ending the subscribers are told nothing: they have left, or are being closed. */
  end(ending?: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forget();
    this.#closeSource();
    const subscribers = Array.from(this.subscribers);
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
      const announce = async (): Promise<boolean> =>
        this.#ended || this.#announce(await toJson(event.value));
      while (!(await this.#queue(announce, this.#isHeavy)));
    }
  }

  /**
   * Delivers an event. Returns false for one that turns out to be heavy, and has to wait for
   * memory. Subscribers that join meanwhile do not get it.
   */
  async #announce(json: string): Promise<boolean> {
    const { engine, pool, metrics } = this.#deps;
    const { scheduler } = engine;
    const wasHeavy = this.#isHeavy;
    this.#isHeavy = json.length > lightBytesMax;
    if (this.#isHeavy && !wasHeavy && pool.isOver) return false;
    const event = new SharedEvent(Buffer.from(json), pool, scheduler.turns === this.#turn);
    this.#turn = scheduler.turns;
    for (const [at, subscriber] of Array.from(this.subscribers).entries()) {
      if (at % subscribersAtOnce === subscribersAtOnce - 1) await scheduler.turn();
      if (!subscriber.next(event)) metrics?.subscriberDropped('behind');
    }
    return true;
  }

  /** Not awaited: `return()` settles the pending `next()`, which ends the reading. */
  #closeSource(): void {
    this.#events?.return?.().catch(() => undefined);
    this.#events = undefined;
  }
}

type Work = () => Promise<boolean>;
/** Resolves when `work` has run after the work queued before it. */
type EventQueue = (work: Work, isHeavy: boolean) => Promise<boolean>;

/** How often heavy work that waits for memory looks for it … */
const lookMilliseconds = 50;
/** … and how often at most: in ten seconds those who do not read are disconnected. */
const looksMax = 200;

/**
 * Makes and delivers the events of all groups one after the other, so that only one is being made,
 * and others are served in between when an iteration of the event loop has had its time.
 */
function createEventQueue({ engine, pool }: SubscriptionsDeps): EventQueue {
  const one = createLine();
  const oneHeavy = createLine();
  const run = (work: Work): Promise<boolean> =>
    one(async () => {
      await engine.scheduler.turn();
      return work();
    });
  const runHeavy = (work: Work): Promise<boolean> =>
    // Only one waits among the light ones, so that each of them waits for one heavy at most.
    oneHeavy(async () => {
      for (let looks = 0; pool.isOver && looks < looksMax; looks += 1) {
        await delay(lookMilliseconds, undefined, { ref: false });
      }
      return run(work);
    });
  return (work, isHeavy) => (isHeavy ? runHeavy(work) : run(work));
}

/** Returns a function that runs one work after the other. */
function createLine(): (work: Work) => Promise<boolean> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}
