/**
 * Gives memory back before the garbage collector finds it. V8 counts the bytes of buffers against
 * its heap: beside a small heap every 8 MiB that pass through an upload would start a collection
 * of all of it, which takes longer than receiving them.
 */

import type { MessagePort } from 'node:worker_threads';

/** Takes chunks that nobody reads again, and that share their memory with nothing. */
export type ReleaseMemory = (chunks: readonly Buffer[]) => void;

export function createMemoryRelease(): ReleaseMemory {
  let drain: MessagePort | undefined;
  return (chunks) => {
    if (chunks.length === 0) return;
    const memory: ArrayBuffer[] = [];
    for (const { buffer } of chunks) if (buffer instanceof ArrayBuffer) memory.push(buffer);
    drain ??= openDrain();
    drain.postMessage(undefined, memory);
  };
}

/**
 * A port whose other end is closed: what is transferred to it belongs to nobody, and its memory is
 * free when the call returns (HTML Standard, message ports; no Node before 21 has
 * `ArrayBuffer.prototype.transfer`).
 */
function openDrain(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  return port1;
}
