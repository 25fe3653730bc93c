/**
 * How many requests of one connection are taken in one turn of the event loop. Node hands over all
 * that one read brings, 64 KiB, before it looks at the next connection, and 30 bytes are a request:
 * a few clients that send nothing else would have the loop for seconds.
 */

import type { Socket } from 'node:net';

/** `last`: its answer ends the connection (RFC 9112 §9.6). `drop`: it is not even looked at. */
export type Admission = 'take' | 'last' | 'drop';

export type PipelineLimit = (connection: Connection) => Admission;
type Connection = Pick<Socket, 'pause' | 'once'>;

/** To be asked for each request, as they come; `max` of one connection are taken in a turn. */
export function createPipelineLimit(max: number): PipelineLimit {
  /** What one read brings stands together: one connection is in hand at a time. */
  let current: Connection | undefined;
  let count = 0;
  /** Those that end with an answer under way. */
  const ending = new Set<Connection>();
  const endTurn = (): void => {
    current = undefined;
  };

  return (connection) => {
    if (connection !== current) {
      current = connection;
      count = 0;
    }
    count += 1;
    if (ending.size > 0 && ending.has(connection)) {
      // The body of the last one is here by now: nothing more is needed.
      connection.pause();
      return 'drop';
    }
    // With one request in each turn, as nearly all clients send them, this is every second turn.
    if (count === 2) setImmediate(endTurn);
    if (count < max) return 'take';
    ending.add(connection);
    connection.once('close', () => ending.delete(connection));
    return 'last';
  };
}
