/**
 * A subscriber that resumes after a comment (R41): a subscription is a page, and then what comes.
 * It gets every comment stored after that one, and then the events of its group, each once and in
 * the order stored.
 *
 * 1. It is a member of the group from the start. So the topic is followed, and the group ends it.
 * 2. It reads a page of the comments after its place. They are sent to it alone, if it may read
 *    their posts now (R44), until some wait for the client. Its place is now the last of these. It
 *    goes on when the client has taken them: the client sets the pace.
 * 3. Events of the group are dropped meanwhile: what is stored after its place is in a later page.
 *    Was the page the last one, sent whole, and was no event dropped that is after its place? Then
 *    it is live: from now on it passes on the events after its place. Otherwise it goes on at 2.
 * 4. Sixteen read at the same time, and connections have turns, however many subscriptions each of
 *    them resumes. If the store is away, what was not sent is read again a second later.
 *
 *     resumes after 4; the store has 5 to 8; a page has three comments
 *     page 5, 6, 7       not the last
 *     page 8             the last; while it is sent, 9 is stored and its event dropped
 *     page 9             the last; the event of 9 is not after the place: it is live
 *     10 is stored       its event is passed on
 */

import { setTimeout as delay } from 'node:timers/promises';
import { mayRead } from '../../domain/readers.ts';
import { AppError } from '../../errors.ts';
import type { ConnectionMemory } from '../../memory-pool.ts';
import type { Place } from '../../store/comments-after.ts';
import type { Subscription } from '../engine.ts';
import { isOutage, toErrors } from '../errors.ts';
import { type EventDeps, type Group, type Member, retryMilliseconds } from './group.ts';
import type { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';

export interface Resumed {
  /** Who gets the pages. */
  readonly subscriber: Subscriber;
  /** What it is in the group. */
  readonly member: Member;
  /** The id of the last comment that it has seen. */
  readonly after: string;
  /** The group that it joins. */
  readonly group: Pick<Group, 'opened' | 'send' | 'leave' | 'members'>;
}

/** Comments of a page at most. */
const pageLimit = 100;

export class Resumption implements Subscriber {
  readonly #resumed: Resumed;
  readonly #deps: EventDeps;
  /** What is after it was not sent; undefined until it was found. */
  #place: Place | undefined;
  /** Of the last event that was dropped since the page was read. */
  #dropped: Place | undefined;
  /** Comments of the next page. */
  #limit = pageLimit;
  #isLive = false;

  constructor(resumed: Resumed, deps: EventDeps) {
    this.#resumed = resumed;
    this.#deps = deps;
  }

  get memory(): ConnectionMemory {
    return this.#resumed.subscriber.memory;
  }

  next(event: SharedEvent): boolean {
    if (this.#place !== undefined && event.place <= this.#place) return true;
    if (this.#isLive) return this.#resumed.subscriber.next(event);
    this.#dropped = event.place;
    return true;
  }

  taken(): Promise<void> | undefined {
    return this.#resumed.subscriber.taken();
  }

  end(ending: Ending): void {
    this.#resumed.subscriber.end(ending);
  }

  /** Resolves when it is live or has left its group. Never rejects. */
  async run(): Promise<void> {
    const { group, member } = this.#resumed;
    // The group reports why its source did not open.
    const source = await group.opened.catch(() => undefined);
    if (source === undefined) return;
    while (!this.#isLive && group.members.has(member)) {
      try {
        const place = (this.#place ??= await this.#findPlace());
        await this.taken();
        await this.#deps.reading.run(this.memory, () => this.#sendPage(place, source));
      } catch (error) {
        if (!group.members.has(member)) return;
        const errors = toErrors(error, this.#deps.log, 'resumption');
        if (errors.every(isOutage)) await delay(retryMilliseconds, undefined, { ref: false });
        else {
          group.leave(member);
          this.end({ kind: 'refused', errors });
        }
      }
    }
  }

  async #findPlace(): Promise<Place> {
    const { comments } = this.#deps.store;
    const { after, member } = this.#resumed;
    const comment = member.reader && (await comments.find(after));
    const isThere = comment === undefined || (await this.#mayRead(comment.postId));
    const place = isThere ? await comments.placeOf(after) : undefined;
    if (place === undefined) throw new AppError('not_found', 'There is no comment with this id.');
    return place;
  }

  async #mayRead(postId: string): Promise<boolean> {
    const { reader } = this.#resumed.member;
    return reader === undefined || mayRead(reader, await this.#deps.store.posts.find(postId));
  }

  /** Reads and sends a page, or what the client takes of it. */
  async #sendPage(from: Place, source: Subscription): Promise<void> {
    const { store, pool, scheduler } = this.#deps;
    const { subscriber, member, group } = this.#resumed;
    // Another subscription of its connection was before it.
    if (this.taken() !== undefined) return;
    // What was dropped before is stored: the page has it, unless it was removed.
    this.#dropped = undefined;
    const range = { postId: member.postId, limit: this.#limit };
    const { found, isLast } = await scheduler.run(() => store.comments.after(from, range));
    const reservation = pool.open();
    reservation.set(found.reduce((sum, { comment }) => sum + 2 * comment.content.length, 0));
    /** One post after the other: together they can be long. */
    const readable = new Map<string, boolean>();
    let count = 0;
    try {
      for (const placed of found) {
        if (this.taken() !== undefined || !group.members.has(member)) break;
        const { postId } = placed.comment;
        const isReadable = readable.get(postId) ?? (await this.#mayRead(postId));
        readable.set(postId, isReadable);
        if (isReadable) await group.send(source, placed, [{ ...member, subscriber }]);
        // At once: if the store fails before the next one, this one is not sent again.
        this.#place = placed.place;
        count += 1;
      }
    } finally {
      reservation.release();
    }
    // Of long comments, few are sent: the next page need not have many more.
    this.#limit = Math.min(pageLimit, 2 * Math.max(1, count));
    // At once: nothing can come between this page and the events that are passed on.
    this.#isLive = isLast && count === found.length && this.#hasAll(from);
  }

  /** No event was dropped that is after its place. */
  #hasAll(from: Place): boolean {
    return this.#dropped === undefined || this.#dropped <= (this.#place ?? from);
  }
}
