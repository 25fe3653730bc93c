/** A group of equal subscriptions: reads the source, executes each event once and delivers it. */

import { AppError } from '../../errors.ts';
import { type JsonBody, toBytes } from '../../http/response-cache.ts';
import type { MaybePromise } from '../../maybe-promise.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import type { Subscription } from '../engine.ts';
import { isOverload } from '../errors.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';
import type { EventQueue } from './event-queue.ts';
import type { Ending, Member } from './member.ts';
import { SharedEvent } from './shared-event.ts';

export interface GroupDeps {
  /** Shared by all groups. */
  readonly queue: EventQueue;
  readonly pool: Pick<MemoryPool, 'open'>;
  /** Called once, when the group ends. */
  readonly forget: () => void;
  readonly metrics?: GraphqlMetrics | undefined;
}

/** Members served before the time slice is checked. */
const membersAtOnce = 64;
/** A group whose last event was larger than this many bytes lets other groups go first. */
const lightBytesMax = 65_536;

export class Group {
  readonly #members = new Set<Member>();
  readonly #deps: GroupDeps;
  #events: AsyncIterator<unknown> | undefined;
  #isHeavy = false;
  /** When the last event was delivered. */
  #iteration = 0;
  #ended = false;

  constructor(deps: GroupDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#members.size;
  }

  join(member: Member): void {
    this.#members.add(member);
  }

  leave(member: Member): void {
    if (this.#members.delete(member) && this.#members.size === 0) this.end({ kind: 'complete' });
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
    const members = [...this.#members];
    this.#members.clear();
    for (const member of members) {
      if (ending.kind === 'failed') {
        this.#deps.metrics?.subscriberDropped(isOverload(ending.error) ? 'overrun' : 'failed');
      }
      member.end(ending);
    }
  }

  async #read(source: Promise<Subscription>): Promise<Ending> {
    const subscription = await source;
    if (subscription.kind === 'refused') return subscription;
    const { events, toJson } = subscription;
    this.#events = events;
    // The last member may have left while the source was opening.
    if (this.#ended) this.#closeSource();
    for (;;) {
      const event = await events.next();
      if (event.done === true || this.#ended) return { kind: 'complete' };
      await this.#deps.queue.run(() => this.#announce(() => toJson(event.value)), this.#isHeavy);
    }
  }

  async #announce(toJson: () => MaybePromise<JsonBody>): Promise<void> {
    const json = await toJson();
    this.#isHeavy = json.length > lightBytesMax;
    const iteration = this.#deps.queue.iteration();
    const isFurther = iteration === this.#iteration;
    this.#iteration = iteration;
    await this.#deliver(new SharedEvent(toBytes(json), this.#deps.pool, isFurther));
  }

  /** Members that join during the delivery do not get the event. */
  async #deliver(event: SharedEvent): Promise<void> {
    let served = 0;
    const members = Array.from(this.#members);
    for (const member of members) {
      member.next(event);
      served += 1;
      if (served % membersAtOnce === 0) await this.#deps.queue.wait();
    }
  }

  /** Not awaited: `return()` settles the pending `next()`, which ends the reading. */
  #closeSource(): void {
    this.#events?.return?.().catch(() => undefined);
    this.#events = undefined;
  }
}
