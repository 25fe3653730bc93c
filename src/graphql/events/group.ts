/** A group of equal subscriptions: reads the source, executes each event once and delivers it. */

import { AppError } from '../../errors.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Subscription } from '../engine.ts';
import { isOverload } from '../errors.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import type { EventQueue } from './event-queue.ts';
import { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';

export interface GroupDeps {
  /** Shared by all groups. */
  readonly queue: EventQueue;
  readonly pool: Pick<MemoryPool, 'open'>;
  /** Called once, when the group ends. */
  readonly forget: () => void;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** Subscribers served before the time slice is checked. */
const subscribersAtOnce = 64;
/** A group whose last event was larger than this many bytes lets other groups go first. */
const lightBytesMax = 65_536;

export class SubscriptionGroup {
  readonly #subscribers = new Set<Subscriber>();
  readonly #deps: GroupDeps;
  #events: AsyncIterator<unknown> | undefined;
  #isHeavy = false;
  /** When the last event was delivered. */
  #turn = 0;
  #ended = false;

  constructor(deps: GroupDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#subscribers.size;
  }

  join(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber);
  }

  leave(subscriber: Subscriber): void {
    const isLast = this.#subscribers.delete(subscriber) && this.#subscribers.size === 0;
    if (isLast) this.end({ kind: 'complete' });
  }

  /** Reads the source until the group ends. Never throws; `report` logs internal errors. */
  read(source: Promise<Subscription>, report: (reason: string) => void): void {
    this.#read(source).then(
      (ending) => this.end(ending),
      (error: unknown) => {
        if (!(error instanceof AppError)) report(String(error));
        this.end({ kind: 'failed', error });
      },
    );
  }

  end(ending: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#deps.forget();
    this.#closeSource();
    const subscribers = [...this.#subscribers];
    this.#subscribers.clear();
    for (const subscriber of subscribers) {
      if (ending.kind === 'failed') {
        this.#deps.metrics?.subscriberDropped(isOverload(ending.error) ? 'overrun' : 'failed');
      }
      subscriber.end(ending);
    }
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
      const announce = (): Promise<boolean> => this.#announce(() => toJson(event.value));
      while (!(await this.#deps.queue.run(announce, this.#isHeavy)));
    }
  }

  /** Returns false for an event that turns out to be heavy, and has to wait for memory. */
  async #announce(toJson: () => MaybePromise<string>): Promise<boolean> {
    if (this.#ended) return true;
    const json = await toJson();
    const wasHeavy = this.#isHeavy;
    this.#isHeavy = json.length > lightBytesMax;
    if (this.#isHeavy && !wasHeavy && !this.#deps.queue.hasRoom) return false;
    const { turn } = this.#deps.queue;
    const isFurther = turn === this.#turn;
    this.#turn = turn;
    await this.#deliver(new SharedEvent(Buffer.from(json), this.#deps.pool, isFurther));
    return true;
  }

  /** Subscribers that join during the delivery do not get the event. */
  async #deliver(event: SharedEvent): Promise<void> {
    let served = 0;
    const subscribers = Array.from(this.#subscribers);
    for (const subscriber of subscribers) {
      if (!subscriber.next(event)) this.#deps.metrics?.subscriberDropped('behind');
      served += 1;
      if (served % subscribersAtOnce === 0) await this.#deps.queue.wait();
    }
  }

  /** Not awaited: `return()` settles the pending `next()`, which ends the reading. */
  #closeSource(): void {
    this.#events?.return?.().catch(() => undefined);
    this.#events = undefined;
  }
}
