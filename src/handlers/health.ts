/** Liveness and readiness, for proxies, orchestrators and `--healthcheck`. */

import { setTimeout as pause } from 'node:timers/promises';
import { uncachedResponse } from '../http/message.ts';
import type { Store } from '../store/store.ts';

/** How long the store may take, and how long its answer counts. */
const patienceMilliseconds = 1_000;

/** `monotonicNow`: milliseconds of a monotonic clock. */
export function createHealthHandlers(store: Pick<Store, 'ping'>, monotonicNow: () => number) {
  let isStopping = false;
  let isAsking = false;
  let askedAt = -Infinity;
  let answer = Promise.resolve(true);

  const ask = async (): Promise<boolean> => {
    await store.ping();
    return true;
  };
  /** Asks at most once a second, and once at a time, so that probes cause no load. */
  const storeAnswers = (): Promise<boolean> => {
    const now = monotonicNow();
    if (isAsking || now - askedAt < patienceMilliseconds) return answer;
    isAsking = true;
    askedAt = now;
    const asked = ask().catch(() => false);
    void asked.then(() => (isAsking = false));
    answer = Promise.race([asked, pause(patienceMilliseconds, false, { ref: false })]);
    return answer;
  };

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
