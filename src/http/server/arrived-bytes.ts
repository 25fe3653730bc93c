/** Bytes that arrive in pieces and are copied together, so that no piece is kept as an object. */

const noBytes: Buffer = Buffer.alloc(0);

export class ArrivedBytes {
  #space = noBytes;
  length = 0;

  /** The memory that the bytes take with so many more. Never falls until they are taken. */
  capacityWith(more: number): number {
    const length = this.length + more;
    // Most bodies are a single piece, which is not copied.
    if (this.length === 0 || length <= this.#space.length)
      return Math.max(length, this.#space.length);
    // Doubled, so that each byte is copied about twice.
    return 2 * length;
  }

  append(piece: Buffer): void {
    const { length } = this;
    const capacity = this.capacityWith(piece.length);
    this.length += piece.length;
    if (length === 0) this.#space = piece;
    else {
      const isFull = capacity > this.#space.length;
      const space = isFull ? Buffer.allocUnsafeSlow(capacity) : this.#space;
      if (isFull) this.#space.copy(space, 0, 0, length);
      piece.copy(space, length);
      this.#space = space;
    }
  }

  /** Returns the bytes, and keeps no view of them: who gets them may release their memory. */
  take(): Buffer {
    const bytes = this.#space.subarray(0, this.length);
    this.#space = noBytes;
    this.length = 0;
    return bytes;
  }
}
