/**
 * The GraphQL endpoint, over HTTP and over WebSocket. It is loaded by the first request that needs
 * it, because `graphql` and `ws` take longer to load than the rest of the service.
 */

import type { Config } from '../config.ts';
import type { Observer } from '../http/server/observe.ts';
import type { GraphqlMetrics } from '../watch/service-metrics.ts';
import { createEngine, type EngineDeps } from './engine.ts';
import { createSubscriptions } from './events/subscriptions.ts';
import { createRunner, type Runner, type RunnerDeps } from './http/runner.ts';
import { createEventStreams } from './http/sse.ts';
import { createWebSocketEndpoint, type WebSocketEndpoint } from './ws/upgrade.ts';

export interface GraphqlEndpoint extends Runner {
  readonly upgrade: WebSocketEndpoint['upgrade'];
  count(): GraphqlCounts;
  /** Ends event streams, and WebSockets with 1001. Resolves when the sockets are closed. */
  close(): Promise<void>;
}

/** Numbers of open connections and subscriptions. */
export interface GraphqlCounts {
  readonly webSockets: number;
  readonly eventStreams: number;
  readonly subscriptions: number;
}

export interface EndpointDeps extends EngineDeps, Omit<RunnerDeps, 'engine' | 'streams'> {
  readonly config: Config;
  readonly observer: Observer;
  readonly metrics: GraphqlMetrics | undefined;
}

/** Different subscriptions: each is executed once per event; a thousand take about 50 ms. */
const distinctMax = 1_000;

export function createEndpoint(deps: EndpointDeps): GraphqlEndpoint {
  const { config, log, pool, viewerOf, metrics } = deps;
  const engine = createEngine(deps);
  const { placed } = deps.store;
  const subscriptions = createSubscriptions({ engine, distinctMax, pool, log, metrics, placed });
  const streams = createEventStreams({ engine, subscriptions, config });
  const sockets = createWebSocketEndpoint({
    ...deps,
    engine,
    subscriptions,
    viewerOf: (authorization) => viewerOf({ header: () => authorization }),
    createRequestId: deps.createUuid,
    now: () => performance.now(),
  });

  return {
    ...createRunner({ ...deps, engine, streams }),
    upgrade: (incoming, socket, head) => sockets.upgrade(incoming, socket, head),
    count: () => ({
      webSockets: sockets.size,
      eventStreams: streams.size,
      subscriptions: subscriptions.count().subscribers,
    }),
    close() {
      streams.close();
      subscriptions.close();
      return sockets.close();
    },
  };
}
