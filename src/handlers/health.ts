/** Liveness and readiness, for proxies, orchestrators and `--healthcheck`. */

import { setTimeout as pause } from 'node:timers/promises';
import { uncachedResponse } from '../http/message.ts';
import type { Store } from '../store/store.ts';

export interface HealthDeps {
  readonly store: Pick<Store, 'ping'>;
  /** Milliseconds of a monotonic clock. */
  readonly monotonicNow: () => number;
}

export function createHealthHandlers(deps: HealthDeps) {
  let isStopping = false;
  const storeAnswers = createProbe(deps);
  return {
    /** `GET /livez`: 200 while the event loop runs, whatever the state of the store. */
    live: () => uncachedResponse(200, { status: 'live' }),
    /** `GET /readyz`: 503 if the server is stopping, or the store does not answer in a second. */
    ready: async () => {
      const checks = {
        server: isStopping ? 'is stopping' : 'ok',
        store: (await storeAnswers()) ? 'ok' : 'does not answer',
      };
      const isReady = checks.server === 'ok' && checks.store === 'ok';
      const status = isReady ? 'ready' : 'not ready';
      return uncachedResponse(isReady ? 200 : 503, { status, checks });
    },
    /** From now on `/readyz` answers 503. */
    announceStop: () => {
      isStopping = true;
    },
  };
}

const patienceMilliseconds = 1_000;

/** Asks the store at most once a second, and one probe at a time, so that probes cause no load. */
function createProbe({ store, monotonicNow }: HealthDeps): () => Promise<boolean> {
  let isAsking = false;
  let askedAt = -Infinity;
  let probe = Promise.resolve(true);

  const ask = async (): Promise<boolean> => {
    try {
      await store.ping();
      return true;
    } catch {
      return false;
    } finally {
      isAsking = false;
    }
  };
  return () => {
    const now = monotonicNow();
    if (isAsking || now - askedAt < patienceMilliseconds) return probe;
    isAsking = true;
    askedAt = now;
    probe = Promise.race([ask(), pause(patienceMilliseconds, false, { ref: false })]);
    return probe;
  };
}
