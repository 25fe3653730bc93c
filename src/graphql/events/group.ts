/** A group of equal subscriptions: reads the source, executes each event once and delivers it. */

import type { MemoryPool } from '../../memory-pool.ts';
import type { Scheduler } from '../../scheduler.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import type { Subscription } from '../engine.ts';
import { isOverload, toPlainError } from '../errors.ts';
import type { EventQueue } from './event-queue.ts';
import { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';

/** What all groups share. */
export interface GroupDeps {
  readonly queue: EventQueue;
  readonly scheduler: Scheduler;
  readonly pool: Pick<MemoryPool, 'open' | 'isOver'>;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** Subscribers served before the time slice is checked. */
const subscribersAtOnce = 64;
/** A group whose last event was larger than this many bytes lets other groups go first. */
const lightBytesMax = 65_536;

export class SubscriptionGroup {
  readonly #subscribers = new Set<Subscriber>();
  readonly #deps: GroupDeps;
  /** Called once, when the group ends. */
  readonly #forget: () => void;
  #events: AsyncIterator<unknown> | undefined;
  #isHeavy = false;
  /** When the last event was delivered. */
  #turn = 0;
  #ended = false;

  constructor(deps: GroupDeps, forget: () => void) {
    this.#deps = deps;
    this.#forget = forget;
  }

  get size(): number {
    return this.#subscribers.size;
  }

  join(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber);
  }

  leave(subscriber: Subscriber): void {
    if (this.#subscribers.delete(subscriber) && this.size === 0) this.end();
  }

  /** Reads the source until the group ends. Never rejects; `report` logs internal errors. */
  async read(source: Promise<Subscription>, report: (reason: string) => void): Promise<void> {
    try {
      this.end(await this.#read(source));
    } catch (error) {
      const isOverrun = isOverload(error);
      if (!isOverrun) report(String(error));
      const reason = isOverrun ? 'overrun' : 'failed';
      this.#subscribers.forEach(() => this.#deps.metrics?.subscriberDropped(reason));
      const failure = toPlainError('INTERNAL_SERVER_ERROR', 'Internal server error');
      this.end(isOverrun ? { kind: 'overrun' } : { kind: 'refused', errors: [failure] });
    }
  }

  /** Without an ending the subscribers are told nothing: they have left, or are being closed. */
  end(ending?: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forget();
    this.#closeSource();
    const subscribers = Array.from(this.#subscribers);
    this.#subscribers.clear();
    if (ending !== undefined) subscribers.forEach((subscriber) => subscriber.end(ending));
  }

  async #read(source: Promise<Subscription>): Promise<Ending> {
    const subscription = await source;
    if (subscription.kind === 'refused') return subscription;
    const { events, toJson } = subscription;
    this.#events = events;
    // The last subscriber may have left while the source was opening.
    if (this.#ended) this.#closeSource();
    for (;;) {
      const event = await events.next();
      if (event.done === true || this.#ended) return { kind: 'complete' };
      const announce = async (): Promise<boolean> =>
        this.#ended || this.#announce(await toJson(event.value));
      while (!(await this.#deps.queue(announce, this.#isHeavy)));
    }
  }

  /**
   * Delivers an event. Returns false for one that turns out to be heavy, and has to wait for
   * memory. Subscribers that join meanwhile do not get it.
   */
  async #announce(json: string): Promise<boolean> {
    const { scheduler, pool, metrics } = this.#deps;
    const wasHeavy = this.#isHeavy;
    this.#isHeavy = json.length > lightBytesMax;
    if (this.#isHeavy && !wasHeavy && pool.isOver) return false;
    const event = new SharedEvent(Buffer.from(json), pool, scheduler.turns === this.#turn);
    this.#turn = scheduler.turns;
    for (const [at, subscriber] of Array.from(this.#subscribers).entries()) {
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
