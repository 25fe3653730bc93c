/**
 * Buffers that change hands, and whose memory is given back before garbage collection.
 *
 * 1. Who hands `OwnedBuffers` over (`http/multipart/parts.ts`) keeps no view of their memory.
 * 2. Who takes them (`store/files/disk.ts`) may release them: this detaches their memory, so that
 *    every view of it is empty from then on.
 * 3. A buffer that is as long as its ArrayBuffer shares it with no other. Shorter ones are left to
 *    garbage collection, because the rest of their memory may belong to somebody else.
 *
 *     a chunk of 64 KiB, all content of a part: released when it is written to the disk
 *     a chunk of 64 KiB with the header block of a part: its content is a view, and not released
 */

export type OwnedBuffers = readonly Buffer[];

/**
 * A port whose other end is closed: the memory of buffers transferred to it is freed at once (HTML
 * Standard, message ports; Node has `ArrayBuffer.prototype.transfer` only since version 21).
 */
const { port1: drain, port2: closed } = new MessageChannel();
closed.close();

/**
 * V8 counts buffers towards its heap: with a small heap, every 8 MiB of an upload would start a
 * full collection, which takes longer than receiving them.
 */
export function releaseBuffers(buffers: OwnedBuffers): void {
  const owned = buffers.flatMap(({ byteLength, buffer }) =>
    byteLength === buffer.byteLength ? [buffer as ArrayBuffer] : [],
  );
  if (owned.length > 0) drain.postMessage(undefined, owned);
}
