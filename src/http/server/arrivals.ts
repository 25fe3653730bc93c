/**
 * Spaces the connections of an address whose connection was ended because a packet of it held too
 * many pieces of a body, or requests. To read such a packet takes 15 to 30 ms, even if the
 * connection ends at once, and a program connects again at once.
 *
 * 1. After such a packet, and after each connection that has sent nothing yet, the next connection
 *    of the address is read 50 ms later. One that has ended, or has sent something else, takes no
 *    time from those behind it: otherwise a client that connects more often than that would wait
 *    until its request is late.
 * 2. Connections of all such addresses are read one after the other, each when what the one before
 *    it had sent was read.
 * 3. If nobody waits any more, the address is forgotten.
 *
 * Example: a connection of 192.0.2.1 is ended at 0 ms; A, B and C of this address come. A is read
 * at 50 ms and has sent nothing, so B is read at 100 ms. B has sent a request: C is read then too.
 */

import type { Socket } from 'node:net';
import { setImmediate as nextIteration, setTimeout as delay } from 'node:timers/promises';
import { BoundedMap } from '../../bounded-map.ts';
import { createSerial } from '../../serial.ts';
import { createIsTrusted, toAddress } from '../client-address.ts';

/** Between two connections of such an address. */
const spaceMilliseconds = 50;
/** About 400 bytes each; IPv6 addresses are not grouped. */
const addressesMax = 10_000;

interface Slow {
  /** When its next connection may be read. */
  nextAt: number;
  /** Its connections in the order in which they came, each paused. */
  readonly waiting: Set<Socket>;
  isReading: boolean;
}

/** Proxies in `trustedProxies` are never slowed down: others connect through them. */
export function createArrivals(trustedProxies: readonly string[], now: () => number) {
  const isTrusted = createIsTrusted(trustedProxies);
  const addresses = new BoundedMap<Slow>(addressesMax);
  const line = createSerial();
  const readNext = async (slow: Slow): Promise<void> => {
    const [socket] = slow.waiting;
    if (socket === undefined) return;
    slow.waiting.delete(socket);
    socket.resume();
    // In the next iteration what it has sent is read, and it ends if that is nothing or too much.
    await nextIteration();
    await nextIteration();
    const isSilent = socket.writable && socket.bytesRead === 0;
    if (isSilent) slow.nextAt = now() + spaceMilliseconds;
  };
  const readAll = async (slow: Slow): Promise<void> => {
    slow.isReading = true;
    while (slow.waiting.size > 0) {
      const milliseconds = slow.nextAt - now();
      if (milliseconds > 0) await delay(milliseconds, undefined, { ref: false });
      await line.run(() => readNext(slow));
    }
    slow.isReading = false;
  };

  return {
    /** Call it when a connection was ended for such a packet. */
    slowDown(address: string): void {
      const peer = toAddress(address);
      if (peer === undefined || isTrusted(peer)) return;
      const slow = addresses.get(address) ?? { nextAt: 0, waiting: new Set(), isReading: false };
      slow.nextAt = now() + spaceMilliseconds;
      addresses.set(address, slow);
    },
    /**
     * Call it for a new connection, which is read later if its address is slowed down. What arrives
     * before stays with the operating system.
     */
    accept(socket: Socket, address: string): void {
      const slow = addresses.get(address);
      if (slow === undefined) return;
      const { nextAt, waiting, isReading } = slow;
      if (!isReading && nextAt <= now()) return addresses.delete(address);
      // Node begins to read in a tick of its own.
      queueMicrotask(() => socket.pause());
      socket.once('close', () => waiting.delete(socket));
      waiting.add(socket);
      if (!isReading) void readAll(slow);
    },
  };
}
