/**
 * Copies the chunks of a body into one buffer as they arrive. A client can send each byte
 * separately, and each chunk would take about 250 bytes in addition to its own.
 */

const noBytes = Buffer.alloc(0);

export class GatheredBytes {
  #space: Buffer = noBytes;
  /** The number of bytes so far. */
  length = 0;

  /** The memory in use, in bytes. */
  get capacity(): number {
    return this.#space.length;
  }

  add(piece: Buffer): void {
    const length = this.length + piece.length;
    // Most bodies are a single chunk, which is not copied.
    if (this.length === 0) this.#space = piece;
    else {
      if (length > this.#space.length) this.#grow(length);
      piece.copy(this.#space, this.length);
    }
    this.length = length;
  }

  /** Returns all bytes, and starts again without any. */
  take(): Buffer {
    const space = this.#space;
    const bytes = space.length === this.length ? space : space.subarray(0, this.length);
    this.#space = noBytes;
    this.length = 0;
    return bytes;
  }

  /** Doubles the buffer, so that each byte is copied about twice. */
  #grow(length: number): void {
    const space = Buffer.allocUnsafeSlow(2 * length);
    this.#space.copy(space, 0, 0, this.length);
    this.#space = space;
  }
}
