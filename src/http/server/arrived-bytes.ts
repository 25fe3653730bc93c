/** Bytes that arrive in pieces and are copied together, so that no piece is kept as an object. */

const noBytes: Buffer = Buffer.alloc(0);

export class ArrivedBytes {
  #space = noBytes;
  length = 0;

  /** The memory that the bytes take. */
  get capacity(): number {
    return this.#space.length;
  }

  append(piece: Buffer): void {
    const { length } = this;
    this.length += piece.length;
    // Most bodies are a single piece, which is not copied.
    if (length === 0) this.#space = piece;
    else {
      // Doubled, so that each byte is copied about twice.
      const isFull = this.length > this.#space.length;
      const space = isFull ? Buffer.allocUnsafeSlow(2 * this.length) : this.#space;
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
