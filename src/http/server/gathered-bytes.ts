/**
 * Pieces of a body, copied together as they come. A client can send each byte by itself, and a
 * piece takes about 250 bytes of memory beside its own.
 */

const noBytes = Buffer.alloc(0);

export class GatheredBytes {
  #space: Buffer = noBytes;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The memory that they take. */
  get capacity(): number {
    return this.#space.length;
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    // Nearly every body is one piece, which stays what it is.
    if (this.#length === 0) this.#space = piece;
    else {
      if (length > this.#space.length) this.#grow(length);
      piece.copy(this.#space, this.#length);
    }
    this.#length = length;
  }

  /** All that was added, once. */
  take(): Buffer {
    const space = this.#space;
    const bytes = space.length === this.#length ? space : space.subarray(0, this.#length);
    this.#space = noBytes;
    this.#length = 0;
    return bytes;
  }

  /** By doubling: however many pieces there are, each byte is copied about twice. */
  #grow(length: number): void {
    const space = Buffer.allocUnsafeSlow(2 * length);
    this.#space.copy(space, 0, 0, this.#length);
    this.#space = space;
  }
}
