/**
 * Equal subscriptions: an event is executed and serialised once for all of them (R30). Every
 * subscriber gets the events in the order stored. They may differ in their own arguments
 * (`documents/own-arguments.ts`).
 *
 * 1. The group takes a comment from the topic. Those get it who have joined before, and want the
 *    comments of its post (R38).
 * 2. Where posts have owners, those of them get it who could read its post when the event was made
 *    (R44). A group whose members do not want it reads no post and waits for nothing.
 * 3. The author of the comment is read, if it is asked for. The comment waits in the line of all
 *    groups (`event-line.ts`), where nothing waits for the store. It is executed, and delivered to
 *    64 subscribers in a turn.
 *
 * Example: 2,000 pages show a post each, and two of them the same. A comment is stored on that one.
 * There is one group; the event is executed once, and given to these two.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { type DocumentNode, visit } from 'graphql';
import type { Announced } from '../../domain/comments.ts';
import { mayRead, type Reader } from '../../domain/readers.ts';
import { AppError, toStack } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Scheduler } from '../../scheduler.ts';
import type { PlacedComment } from '../../store/comments-after.ts';
import type { Store } from '../../store/store.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import type { Engine, Operation, Subscription } from '../engine.ts';
import { isOutage, RequestError, toErrors, toMasked } from '../errors.ts';
import type { EventLine } from './event-line.ts';
import type { Rotation } from '../rotation.ts';
import { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';

/** Characters of a field beside the content: its name, an id or a date. */
const fieldLength = 64;
/** Members served in one work. */
const membersAtOnce = 64;
/** While the store is away. */
export const retryMilliseconds = 1_000;

export interface Member {
  /** Itself, or what resumes for it. */
  subscriber: Subscriber;
  /** Some get an event and some do not (R44). Replaced when the account has changed. */
  reader: Reader | undefined;
  /** The post whose comments it wants; undefined for all. */
  readonly postId: string | undefined;
}

/** What groups and resumptions need. */
export interface EventDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'readerOf' | 'hasOwners'>;
  readonly store: Pick<Store, 'comments' | 'posts' | 'authors'>;
  readonly pool: Pick<MemoryPool, 'open'>;
  readonly line: EventLine;
  /** Those that read a page, by connection. */
  readonly reading: Rotation;
  readonly scheduler: Scheduler;
  readonly log: Log;
  readonly metrics?: GraphqlMetrics | undefined;
}

interface Ended {
  /** Called once, when the group ends. */
  readonly forget: () => void;
}

export class Group {
  readonly members = new Set<Member>();
  /** The source, with which the subscribers that resume execute events too. */
  readonly opened: Promise<Subscription>;
  readonly #deps: EventDeps & Ended;
  readonly #asked: ReturnType<typeof toAsked>;
  /** When the last event was made. */
  #turn = 0;
  #ended = false;

  constructor(operation: Operation, requestId: string, deps: EventDeps & Ended) {
    this.#deps = deps;
    this.#asked = toAsked(operation.document);
    // Without a token: the events of a group must not depend on its first subscriber.
    this.opened = deps.engine.subscribe(operation, { requestId, viewer: () => undefined });
    void this.#follow(requestId);
  }

  leave(member: Member): void {
    if (this.members.delete(member) && this.members.size === 0) this.end();
  }

  /** Reads the source until the group ends. Never rejects: internal errors are logged. */
  async #follow(requestId: string): Promise<void> {
    try {
      const source = await this.opened;
      for (;;) {
        const event = await source.events.next();
        if (event.done === true) return this.end({ kind: 'complete' });
        await this.#announce(source, event.value);
      }
    } catch (error) {
      if (error instanceof RequestError) return this.end({ kind: 'refused', errors: error.errors });
      const { log, metrics } = this.#deps;
      const isOverflow = error instanceof AppError && error.code === 'overloaded';
      if (!isOverflow) log('error', 'subscription failed', { requestId, reason: toStack(error) });
      const reason = isOverflow ? 'overflow' : 'failed';
      this.members.forEach(() => metrics?.subscriberDropped(reason));
      this.end(
        isOverflow ? { kind: 'overflow' } : { kind: 'refused', errors: [toMasked(requestId)] },
      );
    }
  }

  /** Without an ending the subscribers are told nothing: they have left, or are being closed. */
  end(ending?: Ending): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#deps.forget();
    // Not awaited: `return()` settles the pending `next()`, which ends the reading.
    void this.opened.then(({ events }) => events.return?.()).catch(() => undefined);
    const subscribers = Array.from(this.members, ({ subscriber }) => subscriber);
    this.members.clear();
    if (ending !== undefined) subscribers.forEach((subscriber) => subscriber.end(ending));
  }

  async #announce(source: Subscription, placed: Announced): Promise<void> {
    const isWanted = ({ postId }: Member): boolean =>
      postId === undefined || postId === placed.comment.postId;
    let members = Array.from(this.members).filter(isWanted);
    if (members.length > 0 && this.#deps.engine.hasOwners) {
      const { postId } = placed.comment;
      const post =
        (await placed.post) ?? (await this.#read(() => this.#deps.store.posts.find(postId)));
      members = members.filter(({ reader }) => mayRead(reader, post));
    }
    if (members.length > 0) await this.send(source, placed, members);
  }

  /** Waits while the store is away. */
  async #read<T>(read: () => MaybePromise<T>): Promise<T> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        if (!toErrors(error, this.#deps.log, 'event').every(isOutage)) throw error;
        await delay(retryMilliseconds, undefined, { ref: false });
      }
    }
  }

  /** Executes a comment and delivers it to these members, unless the group has ended. */
  async send(
    source: Subscription,
    { comment, place }: PlacedComment,
    members: readonly Member[],
  ): Promise<void> {
    const { line, pool, scheduler, metrics, store } = this.#deps;
    const { authorId } = comment;
    const author =
      this.#asked.author && authorId !== null
        ? await this.#read(() => store.authors.find(authorId))
        : undefined;
    await line((comment.content.length + fieldLength) * this.#asked.fields, async () => {
      if (this.#ended) return;
      const json = Buffer.from(await scheduler.run(() => source.toJson(comment, author)));
      const isSameIteration = scheduler.turns === this.#turn;
      this.#turn = scheduler.turns;
      // Not made by a spread: V8 gives such an object a shape of its own, and each event takes a
      // tenth longer.
      const event = new SharedEvent(json, pool, { id: comment.id, place, isSameIteration });
      let served = 0;
      const deliver = (): boolean => {
        for (const { subscriber } of members.slice(served, served + membersAtOnce)) {
          if (!subscriber.next(event)) metrics?.subscriberDropped('slow_consumer');
        }
        served += membersAtOnce;
        return served < members.length;
      };
      while (await scheduler.run(deliver));
    });
  }
}

/** What the document of a group asks for. */
function toAsked(document: DocumentNode) {
  /** An event is at most so many times as long as its comment. */
  let fields = 0;
  /** Whether the author of the comment may be asked for. */
  let author = false;
  visit(document, {
    Field({ name }) {
      fields += 1;
      author ||= name.value === 'author';
    },
  });
  return { fields, author };
}
