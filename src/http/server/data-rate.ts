/**
 * The minimum data rate (R39). A client that owes its body, or is owed output, and moves too
 * few bytes for some seconds loses its connection; one that moves enough keeps it, however long it
 * takes. Enough is in proportion to the memory that the connection holds itself, so that a client
 * that wants to keep memory of the server must send, or take, a sixtieth of it each second.
 *
 * Example: an upload of 120 KB that is kept in memory must come with 2 KB/s at its end. A
 * piece buys the time for itself, so that a client may pause after it, for up to 30 seconds.
 */

/** What a connection waits for. `response`: the server makes it, so that nothing has to move. */
export type Due = 'nothing' | 'body' | 'output' | 'response';

/** Bytes per second of a connection that holds little: a modem is faster. */
const bytesMin = 256;
/** A connection has to move as many bytes as it holds within this time. */
const heldSeconds = 60;
/** The time until a body begins. */
const graceSeconds = 5;

interface Hold {
  /** The bytes of memory that the connection holds. */
  readonly held: number;
  /** How long it may stand still. */
  readonly secondsMax: number;
}

/** The time that one connection has left. */
export class ProgressDeadline {
  #due: Due = 'nothing';
  #bytes = 0;
  #seconds = 0;

  /**
   * Call it once a second. `bytes`: moved so far in the due direction. Returns true if the
   * client was too slow. Calls are counted, not time: a server that was busy reads late.
   */
  hasPassed(due: Due, bytes: number, { held, secondsMax }: Hold): boolean {
    const moved = bytes - this.#bytes;
    const hasBegun = due !== this.#due;
    this.#due = due;
    this.#bytes = bytes;
    if (due === 'nothing') return false;
    if (hasBegun) {
      this.#seconds = due === 'body' ? Math.min(graceSeconds, secondsMax) : secondsMax;
    } else if (moved > 0) {
      // While the server makes a response, anything that moves shows that the client is there.
      const bought =
        due === 'response' ? secondsMax : moved / Math.max(bytesMin, held / heldSeconds);
      this.#seconds = Math.min(this.#seconds + bought, secondsMax);
    }
    this.#seconds -= 1;
    return this.#seconds < 0;
  }
}
