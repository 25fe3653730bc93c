/**
 * A subscriber that resumes after a comment (R41): it gets every comment stored after that one, and
 * then the events of its group, each once and in the order stored.
 *
 * 1. It is a member of the group from the start. So the topic is followed, and the group ends it.
 *    Events of the group are left out until there is a cut.
 * 2. It reads a page of the comments after its place. Before that the store calls `onCut`: what the
 *    topic has published until then is what this and earlier pages can hold. Events behind the cut
 *    are held from now on, up to `heldBytesMax`.
 * 3. The comments of the page are sent to it alone, by the rules of an event (`group.ts`), until
 *    `sentBytesMax` are on their way. Its place is now the last of these; what is left of the page
 *    is dropped. It waits until the client has taken them: the client sets the pace.
 * 4. Was the page the last one, sent whole, was there room for all held events, and may those who
 *    could read them still do so? They are sent, and it is live: from now on it passes the group's
 *    events on. Otherwise the held events are dropped, because a later page has them, and it goes
 *    on at 2.
 * 5. The group may deliver late what was published before the cut: an event is known by its
 *    position in the topic, and left out up to the cut, also when the subscriber is live.
 * 6. A few read at the same time (`gate`). The others hold a place, and what the client has not
 *    taken. If the store is away, what was not sent is read again a second later.
 *
 *     stored order   … 4   5   6   7   8   9 │ 10  11
 *     after 4          └──page──┘└──page──┘ cut └held┘ → live
 *
 *     resumes after 4; the store has 5 to 8; a page has three comments
 *     cut: 8 published   page 5, 6, 7         not the last: what is held is dropped
 *     9 is stored        left out of the events, because a page has it
 *     cut: 9 published   page 8, 9, the last  the group still delivers 9: left out (5)
 *     10 is stored       held                 8 and 9 are taken: 10 is sent, and it is live
 *     11 is stored       passed on
 */

import { setImmediate as nextIteration, setTimeout as delay } from 'node:timers/promises';
import type { Topic } from '../../domain/comments.ts';
import { mayRead } from '../../domain/readers.ts';
import { AppError } from '../../errors.ts';
import type { Log } from '../../log.ts';
import { type ConnectionMemory, type MemoryPool, uncountedBytesMax } from '../../memory-pool.ts';
import type { Scheduler } from '../../scheduler.ts';
import type { Place } from '../../store/comments-after.ts';
import type { Comment } from '../../store/model.ts';
import type { Store } from '../../store/store.ts';
import type { Resume } from '../documents/resuming.ts';
import type { Subscription } from '../engine.ts';
import { isOutage, toErrors } from '../errors.ts';
import type { Gate } from '../permits.ts';
import { type Group, retryMilliseconds, type Sending, type Viewer } from './group.ts';
import type { SharedEvent } from './shared-event.ts';
import type { Ending, Subscriber } from './subscriber.ts';

export interface ResumptionDeps {
  readonly store: Pick<Store, 'comments' | 'posts'>;
  readonly commentAdded: Pick<Topic<Comment>, 'position'>;
  readonly pool: Pick<MemoryPool, 'open'>;
  readonly scheduler: Scheduler;
  readonly gate: Gate;
  readonly log: Log;
}

export interface Resumed {
  readonly subscriber: Subscriber;
  /** Comments that do not exist for its reader are left out (R44). */
  readonly viewer: Viewer;
  readonly resume: Resume;
  /** The group that it joins. */
  readonly group: Pick<Group, 'opened' | 'send' | 'leave'> & {
    readonly subscribers: Pick<Group['subscribers'], 'has'>;
  };
}

/** Comments of a page at most. */
const pageLimit = 100;
/** Sent before the client has taken it: less than any client may have queued (`subscriber.ts`). */
const sentBytesMax = 32_768;
/** Held events count as part of the connection. */
const heldBytesMax = uncountedBytesMax;
/** Memory of a held event without its JSON, in bytes. */
const eventBytes = 256;

export class Resumption implements Subscriber {
  readonly #subscriber: Subscriber;
  readonly #viewer: Viewer;
  readonly #resume: Resume;
  readonly #group: Resumed['group'];
  readonly #deps: ResumptionDeps;
  /** When its request was received. */
  readonly #since = performance.now();
  /** What is behind it was not sent; undefined until it was found. */
  #place: Place | undefined;
  /** Events up to this position are left out. */
  #cut = Infinity;
  /** Undefined while events are not held. */
  #held: SharedEvent[] | undefined;
  #heldBytes = 0;
  /** Comments of the next page. */
  #limit = pageLimit;
  #isLive = false;

  constructor({ subscriber, viewer, resume, group }: Resumed, deps: ResumptionDeps) {
    this.#subscriber = subscriber;
    this.#viewer = viewer;
    this.#resume = resume;
    this.#group = group;
    this.#deps = deps;
  }

  get memory(): ConnectionMemory {
    return this.#subscriber.memory;
  }

  next(event: SharedEvent): boolean {
    if (event.position <= this.#cut) return true;
    if (this.#isLive) return this.#subscriber.next(event);
    this.#heldBytes += event.json.length + eventBytes;
    if (this.#heldBytes > heldBytesMax) this.#held = undefined;
    this.#held?.push(event);
    return true;
  }

  taken(): Promise<void> | undefined {
    return this.#subscriber.taken();
  }

  end(ending: Ending): void {
    this.#subscriber.end(ending);
  }

  /** Resolves when it is live or has left its group. Never rejects. */
  async run(): Promise<void> {
    // The group reports why its source did not open.
    const source = await this.#group.opened?.catch(() => undefined);
    if (source === undefined) return;
    while (!this.#isLive && this.#group.subscribers.has(this)) {
      try {
        this.#place ??= await this.#findPlace();
        await this.#advance(this.#place, source);
      } catch (error) {
        // The store has no order of comments any more if this was the last subscriber.
        if (!this.#group.subscribers.has(this)) return;
        const errors = toErrors(error, this.#deps.log, 'resumption');
        if (errors.every(isOutage)) await delay(retryMilliseconds, undefined, { ref: false });
        else {
          this.#group.leave(this);
          this.end({ kind: 'refused', errors });
        }
      }
    }
  }

  async #findPlace(): Promise<Place> {
    const { comments, posts } = this.#deps.store;
    const after = this.#resume.after ?? '';
    const { reader } = this.#viewer;
    let isThere = after !== '';
    if (isThere && reader !== undefined) {
      const comment = await comments.find(after);
      isThere = mayRead(reader, comment && (await posts.find(comment.postId)));
    }
    const place = isThere ? await comments.placeOf(after) : undefined;
    if (place === undefined) throw new AppError('not_found', 'There is no comment with this id.');
    return place;
  }

  /** Reads and sends a page, or what the client may have queued of it. */
  async #advance(from: Place, source: Subscription): Promise<void> {
    const isAll = await this.#deps.gate(() => this.#sendPage(from, source));
    if (!isAll) this.#held = undefined;
    await this.taken();
    const held = this.#held;
    // Nothing can come between these events and those that are passed on.
    if (held?.every(({ isCurrent }) => isCurrent()) === true) {
      this.#isLive = true;
      this.#held = undefined;
      for (const event of held) this.#subscriber.next(event);
    }
  }

  /** Returns true if it was the last page, and was sent whole. */
  async #sendPage(from: Place, source: Subscription): Promise<boolean> {
    const { store, commentAdded, pool, scheduler } = this.#deps;
    // After an iteration, every comment that was committed before has been published too.
    await nextIteration();
    const onCut = (): void => {
      this.#cut = commentAdded.position;
      this.#held = [];
      this.#heldBytes = 0;
    };
    const range = { postId: this.#resume.postId, limit: this.#limit, onCut };
    const { found, isLast } = await scheduler.run(() => store.comments.after(from, range));
    const reservation = pool.open();
    reservation.set(found.reduce((sum, { comment }) => sum + 2 * comment.content.length, 0));
    let [sent, count] = [0, 0];
    try {
      for (const { comment, place } of found) {
        if (sent >= sentBytesMax || !this.#group.subscribers.has(this)) break;
        const ahead = () => found.slice(count + 1).map((behind) => behind.comment);
        const waiting: Sending['waiting'] = [[this.#subscriber, this.#viewer]];
        const shared = { source, comment, position: 0, ahead, since: this.#since };
        sent += await this.#group.send({ ...shared, waiting });
        // At once: if the store fails before the next one, this one is not sent again.
        this.#place = place;
        count += 1;
      }
    } finally {
      reservation.release();
    }
    // Of long comments, few are sent: the next page need not have many more.
    this.#limit = Math.min(pageLimit, 2 * Math.max(1, count));
    return isLast && count === found.length;
  }
}
