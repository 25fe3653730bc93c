/**
 * The engine under every way to subscribe (WebSocket, server-sent events). Identical subscriptions
 * form a group: an event is executed once and serialised once for all of its members (R30). A
 * group opens its source with the first member and ends with the last one.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Engine, GraphqlResult, ReadyOperation } from './engine.ts';
import type { GraphqlError } from './errors.ts';

/** One event of a group, shared by its members. */
export interface SharedEvent {
  /** The execution result as JSON in UTF-8. */
  readonly json: Buffer;
  /** What transports made of it, by what it was made for: made once for all that need the same. */
  readonly forms: Map<string, EventForm>;
}

/** Bytes ready to be written; `body` follows `head` where the two are not worth a copy. */
export interface EventForm {
  readonly head: Buffer;
  readonly body: Buffer | undefined;
}

/** How a subscription ends without being left. */
export type Ending =
  /** The source has no more events. */
  | { readonly kind: 'complete' }
  /** It never began: unusable variables, or the source could not be opened. */
  | { readonly kind: 'refused'; readonly errors: readonly GraphqlError[] }
  /** Something failed on the way. `overloaded`: events came faster than they could be executed. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The server stops. */
  | { readonly kind: 'closing' };

/** One who subscribes. Neither method may throw. */
export interface Member {
  next(event: SharedEvent): void;
  /** Called at most once, and never after leaving. */
  end(ending: Ending): void;
}

export interface Subscriptions {
  /**
   * Takes part from now on; gives back how to leave, which is quick and may be called twice.
   * Equal are operations with the same document, operation name and variables. Throws
   * `overloaded` where one more different subscription is one too many.
   */
  join(operation: ReadyOperation, member: Member): () => void;
  /** Ends every subscription and takes no more. */
  close(): void;
  /** Groups and members at this moment. */
  count(): { readonly groups: number; readonly members: number };
}

export interface SubscriptionsDeps {
  readonly engine: Pick<Engine, 'subscribe' | 'createBudget'>;
  /** Different subscriptions at a time: each is executed once per event. */
  readonly distinctMax: number;
  readonly log: Log;
}

/** Members served before others get a turn: about 10 ms of socket writes. */
const membersPerTurn = 2_000;

export function createSubscriptions(deps: SubscriptionsDeps): Subscriptions {
  const { engine, distinctMax, log } = deps;
  const groups = new Map<string, Group>();
  const toKey = createKeys();
  let closed = false;
  let opened = 0;

  const open = (key: string, operation: ReadyOperation): Group => {
    if (groups.size >= distinctMax) {
      throw new AppError('overloaded', 'Too many different subscriptions are open.');
    }
    const group = new Group(() => void groups.delete(key));
    groups.set(key, group);
    opened += 1;
    // Nobody's token goes in: what all members see must not depend on who was first.
    const scope = {
      requestId: `subscription-${opened}`,
      viewer: () => undefined,
      budget: engine.createBudget(),
    };
    group.read(engine.subscribe(operation, scope), (reason) => {
      log('error', 'subscription failed', { requestId: scope.requestId, reason });
    });
    return group;
  };

  return {
    join(operation, member) {
      if (closed) throw new AppError('draining', 'The server is stopping.');
      const key = toKey(operation);
      const group = groups.get(key) ?? open(key, operation);
      group.join(member);
      return () => group.leave(member);
    },
    close() {
      closed = true;
      for (const group of groups.values()) group.end({ kind: 'closing' });
    },
    count() {
      let members = 0;
      for (const group of groups.values()) members += group.size;
      return { groups: groups.size, members };
    },
  };
}

/**
 * The engine keeps one document per text, so that the object can stand for the text; where it was
 * dropped and parsed anew in between, two groups do the work of one, and nothing is wrong.
 */
function createKeys(): (operation: ReadyOperation) => string {
  const numbers = new WeakMap<object, number>();
  let last = 0;
  return ({ document, operationName = '', variables = {} }) => {
    let number = numbers.get(document);
    if (number === undefined) {
      last += 1;
      number = last;
      numbers.set(document, number);
    }
    return `${number} ${operationName} ${JSON.stringify(variables)}`;
  };
}

class Group {
  readonly #members = new Set<Member>();
  readonly #forget: () => void;
  #results: AsyncIterator<GraphqlResult> | undefined;
  #ended = false;

  constructor(forget: () => void) {
    this.#forget = forget;
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

  /** Owns the reading: every way out of it goes through `end`. `report` hears of our own faults. */
  read(source: ReturnType<Engine['subscribe']>, report: (reason: string) => void): void {
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
    this.#forget();
    this.#closeSource();
    const members = [...this.#members];
    this.#members.clear();
    for (const member of members) member.end(ending);
  }

  async #read(source: ReturnType<Engine['subscribe']>): Promise<Ending> {
    const subscription = await source;
    if (subscription.kind === 'refused') {
      return { kind: 'refused', errors: subscription.result.errors ?? [] };
    }
    this.#results = subscription.results;
    // The last member may have left while the source was opening.
    if (this.#ended) this.#closeSource();
    for (;;) {
      const result = await subscription.results.next();
      if (result.done === true || this.#ended) return { kind: 'complete' };
      const event = { json: Buffer.from(JSON.stringify(result.value)), forms: new Map() };
      if (this.#members.size > membersPerTurn) await this.#deliverInTurns(event);
      else for (const member of this.#members) member.next(event);
    }
  }

  /** Whoever joins meanwhile came after the event; whoever leaves must not get it. */
  async #deliverInTurns(event: SharedEvent): Promise<void> {
    let served = 0;
    const members = Array.from(this.#members);
    for (const member of members) {
      if (this.#members.has(member)) member.next(event);
      served += 1;
      if (served % membersPerTurn === 0) await nextTurn();
    }
  }

  /** Not awaited: the source settles its pending `next()`, and that ends the reading. */
  #closeSource(): void {
    this.#results?.return?.().catch(() => undefined);
    this.#results = undefined;
  }
}
