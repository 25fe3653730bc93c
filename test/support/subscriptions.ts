/** Groups of subscriptions over a source of results, without an engine and without sockets. */

import { parse } from 'graphql';
import { createTopic, type Topic } from '../../dist/domain/comments.js';
import type { Operation, Subscription } from '../../dist/graphql/engine.js';
import type { Ending, SharedEvent, Subscriber } from '../../dist/graphql/events/subscriber.js';
import { createSubscriptions } from '../../dist/graphql/events/subscriptions.js';
import { createScheduler } from '../../dist/scheduler.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import type { GraphqlResult } from './graphql.js';
import { unweighed } from './topic.js';

export function createBench(
  open?: () => Promise<Subscription>,
  { distinctMax = 10, queueMax = 100, poolBytesMax = 1_000_000 } = {},
) {
  const source = createTopic<GraphqlResult>({ ...unweighed, queueMax });
  const pool = new MemoryPool(poolBytesMax);
  let made = 0;
  const count = (): void => void (made += 1);
  const logged: string[] = [];
  const dropped: string[] = [];
  const metrics = {
    operation: () => undefined,
    responseFromCache: () => undefined,
    subscriberDropped: (reason: string) => void dropped.push(reason),
  };
  let opened = 0;
  const engine = {
    scheduler: createScheduler(),
    subscribe: () => {
      opened += 1;
      return open?.() ?? Promise.resolve(streamOf(source, count));
    },
  };
  const log = (_level: string, event: string): void => void logged.push(event);
  const subscriptions = createSubscriptions({ engine, distinctMax, pool, log, metrics });
  return { subscriptions, source, pool, dropped, made: () => made, logged, opened: () => opened };
}

/** The results that are published from now on. */
export function streamOf(
  source: Pick<Topic<GraphqlResult>, 'subscribe'>,
  made?: () => void,
): Subscription {
  return {
    events: source.subscribe(),
    toJson(result) {
      made?.();
      return Promise.resolve(JSON.stringify(result));
    },
  };
}

const documents = new Map<string, Operation['document']>();

export function operationOf(text: string, variables?: Record<string, unknown>): Operation {
  const document = documents.get(text) ?? parse(text);
  documents.set(text, document);
  return { type: 'subscription', document, variables } as unknown as Operation;
}

export class Reader implements Subscriber {
  readonly events: SharedEvent[] = [];
  readonly endings: Ending[] = [];
  next(event: SharedEvent): boolean {
    this.events.push(event);
    return true;
  }
  end(ending: Ending): void {
    this.endings.push(ending);
  }
  texts(): string[] {
    return this.events.map(({ json }) => json.toString());
  }
}
