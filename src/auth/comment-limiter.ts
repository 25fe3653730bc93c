/** The limit for comments without a token, where others need one (R48). */

import { AppError } from '../errors.ts';
import type { LogSecurity } from '../watch/service-metrics.ts';
import { createCounts, toNetwork } from './client-counts.ts';

interface LimiterDeps {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly security: LogSecurity;
}

/**
 * Returns a function that counts a comment from the client with this address. Throws
 * `too_many_requests` beyond `perMinuteMax`, and counts nothing.
 */
export function createCommentLimiter(perMinuteMax: number, { now, security }: LimiterDeps) {
  const counts = createCounts(now);
  return (client: string): void => {
    const network = toNetwork(client);
    const { count, millisecondsLeft } = counts.find(network);
    if (count < perMinuteMax) return counts.add(network);
    security('comment refused', { client });
    const retryAfterSeconds = Math.ceil(millisecondsLeft / 1000);
    const message = 'Too many comments without a token. Try again later, or log in.';
    throw new AppError('too_many_requests', message, { retryAfterSeconds });
  };
}
