/**
 * Spaces the connections of an address whose connection was ended because a packet of it held too
 * many pieces of a body, or requests. To read such a packet takes 15 to 30 ms, even if the
 * connection ends at once, and a program connects again at once.
 *
 * Example: a connection of 192.0.2.1 is ended at 0 ms. The next one is read at 50 ms, and one that
 * comes before that at 100 ms. If nobody waits any more, the address is forgotten. If reading takes
 * longer, several are due at once: one of them is read in an iteration of the event loop.
 */

import type { Socket } from 'node:net';
import { BoundedMap } from '../../bounded-map.ts';
import { createIsTrusted, toAddress } from '../client-address.ts';

/** Between two connections of such an address. */
const spaceMilliseconds = 50;
/** About 100 bytes each; IPv6 addresses are not grouped. */
const addressesMax = 10_000;

/** Proxies in `trustedProxies` are never slowed down: others connect through them. */
export function createArrivals(trustedProxies: readonly string[], now: () => number) {
  const isTrusted = createIsTrusted(trustedProxies);
  /** When the next connection of an address may be read. */
  const nextAt = new BoundedMap<number>(addressesMax);
  const add = (address: string, at: number): void => nextAt.set(address, at + spaceMilliseconds);
  /** Connections whose time has come, each paused. */
  const due: Socket[] = [];
  const readNext = (): void => {
    due.shift()?.resume();
    if (due.length > 0) setImmediate(readNext);
  };

  return {
    /** Call it when a connection was ended for such a packet. */
    slowDown(address: string): void {
      const peer = toAddress(address);
      if (peer === undefined || isTrusted(peer)) return;
      add(address, Math.max(now(), nextAt.get(address) ?? 0));
    },
    /** Returns in how many milliseconds a new connection may be read. */
    delay(address: string): number {
      const at = nextAt.get(address);
      if (at === undefined) return 0;
      const milliseconds = at - now();
      if (milliseconds > 0) add(address, at);
      else nextAt.delete(address);
      return Math.max(0, milliseconds);
    },
    /** Reads a new connection later. What arrives before stays with the operating system. */
    readLater(socket: Socket, milliseconds: number): void {
      // Node begins to read in a tick of its own.
      queueMicrotask(() => socket.pause());
      const end = (): void => {
        if (due.push(socket) === 1) setImmediate(readNext);
      };
      setTimeout(end, milliseconds).unref();
    },
  };
}
