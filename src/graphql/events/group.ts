/**
 * Equal subscriptions: an event is executed and serialised once for all of them (R30). Every
 * subscriber gets the events in the order stored.
 *
 * 1. The group takes a comment from the topic. Those who have joined before get it.
 * 2. Where posts have owners (R44), the group looks at the post (`looks.ts`); the posts of the
 *    comments that wait behind are read by the same statement. A group waits for its looks alone:
 *    if the store is slow or away, this holds nobody who needs no post, and no other group.
 * 3. If nobody may read the post, the comment is left out here: it was not executed.
 * 4. The comment waits in the line of all groups (`event-line.ts`), where nothing waits for the
 *    store. It is executed, and delivered to 64 subscribers in a turn.
 * 5. When it leaves the line, and in each of these turns, the look must be current. Otherwise it
 *    goes back to 2 with the subscribers that are left. The third look is the last one, so that
 *    nobody stops a group by changing a post all the time.
 *
 *     comment 8 of post p, published    look: published; 8 waits in the line behind 20 others
 *     PATCH p, {"status": "DRAFT"}      204
 *     its turn                          p was changed: 8 leaves the line, and was not executed
 *     look: a draft                     its author gets 8, and nobody else
 *
 * What this node has answered about a post holds from then on. What another node has answered
 * holds for the comments that are stored later, and for earlier ones after a second.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { mayRead, type Reader } from '../../domain/readers.ts';
import { AppError, toStack } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Scheduler } from '../../scheduler.ts';
import type { Comment } from '../../store/model.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import type { Engine, Subscription } from '../engine.ts';
import { isOutage, RequestError, toErrors, toMasked } from '../errors.ts';
import type { EventLine } from './event-line.ts';
import type { Looks } from './looks.ts';
import { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';

/** Characters of a field beside the content: its name, an id or a date. */
const fieldLength = 64;
/** Subscribers served in one work. */
const subscribersAtOnce = 64;
/** Comments whose posts are read by one statement. */
const looksAhead = 64;
/** Looks for one comment. */
const looksMax = 3;
/** While the store is away. */
export const retryMilliseconds = 1_000;

/** Who asks. An event has no viewer, but some get it and some do not (R44). */
export interface Viewer {
  /** Replaced when the account has changed. */
  reader: Reader | undefined;
}

type Member = readonly [Subscriber, Viewer];

/** A comment on its way to subscribers. */
export interface Sending {
  readonly source: Subscription;
  readonly comment: Comment;
  /** As of its event. */
  readonly position: number;
  /** The comments behind it. */
  readonly ahead: () => readonly Comment[];
  /** When the request was received that asks for it; undefined for an event. */
  readonly since?: number;
  /** Those who were served, or may not read the post, are removed. */
  readonly waiting: Member[];
}

export interface GroupDeps {
  readonly engine: Pick<Engine, 'hasOwners'>;
  readonly pool: Pick<MemoryPool, 'open'>;
  readonly line: EventLine;
  readonly looks: Looks;
  readonly scheduler: Scheduler;
  readonly log: Log;
  readonly metrics?: GraphqlMetrics | undefined;
}

export class Group {
  readonly subscribers = new Map<Subscriber, Member>();
  /** The source, with which the subscribers that resume execute events too. */
  opened: Promise<Subscription> | undefined;
  readonly #deps: GroupDeps;
  /** Fields of the document: an event is at most so many times as long as its comment. */
  readonly #fields: number;
  /** Called once, when the group ends. */
  readonly #forget: () => void;
  #events: Subscription['events'] | undefined;
  /** When the last event was made. */
  #turn = 0;
  #ended = false;

  constructor(deps: GroupDeps, fields: number, forget: () => void) {
    this.#deps = deps;
    this.#fields = fields;
    this.#forget = forget;
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

  async #read(source: Subscription): Promise<Ending> {
    const { events } = source;
    this.#events = events;
    // The last subscriber may have left while the source was opening.
    if (this.#ended) this.#closeSource();
    const ahead = (): readonly Comment[] => events.ahead(looksAhead);
    for (;;) {
      const event = await events.next();
      if (event.done === true || this.#ended) return { kind: 'complete' };
      const { position } = events;
      const waiting = [...this.subscribers.values()];
      const sending = { source, comment: event.value, position, ahead, waiting };
      while (!(await this.#isSent(sending))) {
        await delay(retryMilliseconds, undefined, { ref: false });
      }
    }
  }

  /** False if the store is away. */
  async #isSent(sending: Sending): Promise<boolean> {
    try {
      await this.send(sending);
      return true;
    } catch (error) {
      if (!toErrors(error, this.#deps.log, 'event').every(isOutage)) throw error;
      return false;
    }
  }

  /**
   * Executes a comment and delivers it, unless the group has ended. Returns the bytes of its event,
   * or 0 if nobody may read it. Rejects if its post cannot be read.
   */
  async send({ source, comment, position, ahead, since, waiting }: Sending): Promise<number> {
    const { engine, line, looks, pool, scheduler } = this.#deps;
    const length = (comment.content.length + fieldLength) * this.#fields;
    let bytes = 0;
    for (let looked = 1; waiting.length > 0 && !this.#ended; looked += 1) {
      const look = engine.hasOwners ? looks.of(comment, ahead, since) : undefined;
      const post = look && (await look.post);
      const canRead = ([, { reader }]: Member): boolean => mayRead(reader, post);
      const isCurrent = (): boolean => look?.isCurrent() ?? true;
      const isGood = (): boolean => looked === looksMax || isCurrent();
      if (!waiting.some(canRead)) break;
      await line(length, async () => {
        if (this.#ended || !isGood()) return;
        const json = Buffer.from(await scheduler.run(() => source.toJson(comment)));
        bytes = json.length;
        const isSameIteration = scheduler.turns === this.#turn;
        this.#turn = scheduler.turns;
        // Not made by a spread: V8 gives such an object a shape of its own, and each event takes a
        // tenth longer.
        const facts = { id: comment.id, position, isSameIteration, isCurrent };
        const event = new SharedEvent(json, pool, facts);
        const deliver = (): boolean => {
          if (!isGood()) return false;
          const members = waiting.splice(0, subscribersAtOnce).filter(canRead);
          for (const [subscriber] of members) this.#deliver(subscriber, event);
          return waiting.length > 0;
        };
        while (await scheduler.run(deliver));
      });
    }
    return bytes;
  }

  #deliver(subscriber: Subscriber, event: SharedEvent): void {
    if (!subscriber.next(event)) this.#deps.metrics?.subscriberDropped('slow_consumer');
  }

  /** Not awaited: `return()` settles the pending `next()`, which ends the reading. */
  #closeSource(): void {
    this.#events?.return?.().catch(() => undefined);
    this.#events = undefined;
  }
}
