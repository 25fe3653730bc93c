/** Liveness and readiness, for proxies, orchestrators and `--healthcheck`. */

import { setTimeout as pause } from 'node:timers/promises';
import { uncachedResponse } from '../http/message.ts';
import type { Store } from '../store/store.ts';

/** How long the store may take to respond, and how long its response counts. */
const pingMilliseconds = 1_000;

/** `monotonicNow`: milliseconds of a monotonic clock. */
export function createHealthHandlers(store: Pick<Store, 'ping'>, monotonicNow: () => number) {
  let isStopping = false;
  let isPinging = false;
  let pingedAt = -Infinity;
  let isUp = Promise.resolve(true);

  const ping = async (): Promise<boolean> => {
    await store.ping();
    return true;
  };
  /** Pings at most once a second, and once at a time, so that probes cause no load. */
  const isStoreUp = (): Promise<boolean> => {
    const now = monotonicNow();
    if (isPinging || now - pingedAt < pingMilliseconds) return isUp;
    isPinging = true;
    pingedAt = now;
    const pinged = ping().catch(() => false);
    void pinged.then(() => (isPinging = false));
    isUp = Promise.race([pinged, pause(pingMilliseconds, false, { ref: false })]);
    return isUp;
  };

  return {
    isStoreUp,
    /** `GET /livez`: 200 while the event loop runs, whatever the state of the store. */
    live: () => uncachedResponse(200, { status: 'live' }),
    /** `GET /readyz`: 503 if the server is stopping, or the store takes longer than a second. */
    ready: async () => {
      const checks = {
        server: isStopping ? 'is stopping' : 'ok',
        store: (await isStoreUp()) ? 'ok' : 'does not answer',
      };
      const isReady = checks.server === 'ok' && checks.store === 'ok';
      const status = isReady ? 'ready' : 'not ready';
      return uncachedResponse(isReady ? 200 : 503, { status, checks });
    },
    /** From now on `/readyz` responds with 503. */
    announceStop: () => {
      isStopping = true;
    },
  };
}
