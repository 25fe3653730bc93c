/**
 * Results as server-sent events (GraphQL over SSE, distinct connections mode). Subscriptions share
 * groups and queue limits with WebSocket (R30).
 */

import { Readable } from 'node:stream';
import type { Config } from '../../config.ts';
import { overloaded } from '../../errors.ts';
import { ClientGone } from '../../http/server/body.ts';
import type { HttpResponse } from '../../http/message.ts';
import type { Operation } from '../engine.ts';
import {
  createQueueLimit,
  type Ending,
  type SharedEvent,
  type Subscriber,
} from '../events/subscriber.ts';
import type { Subscriptions } from '../events/subscriptions.ts';

export type EventStreams = ReturnType<typeof createEventStreams>;

const headers: readonly string[] = [
  'Content-Type',
  'text/event-stream; charset=utf-8',
  'Cache-Control',
  'no-store',
  // Without it, some proxies buffer the response.
  'X-Accel-Buffering',
  'no',
];

/** A stream's connection is not reused, so that a clean stop does not wait for it. */
const streamHeaders: readonly string[] = [...headers, 'Connection', 'close'];

const comment = ':\n\n';
/** The `data` line is empty, but needed: browsers ignore an event without data. */
const complete = 'event: complete\ndata:\n\n';
const nextPrefix = 'event: next\ndata: ';
const nextSuffix = Buffer.from('\n\n');
const noHeader = Buffer.alloc(0);
/** How long a client may take to read its queue while the server stops, as over WebSocket. */
const stopMilliseconds = 1_500;

export function createEventStreams(subscriptions: Subscriptions, config: Config) {
  const streams = new Set<EventStream>();
  const queueBytesMax = createQueueLimit(config, streams);
  // Shorter than the time after which an idle connection is closed.
  const keepAliveSeconds = Math.min(config.wsPingSeconds, config.idleTimeoutSeconds / 2);

  return {
    /** The number of open streams. */
    get size(): number {
      return streams.size;
    },
    /** Responds to a subscription with a `next` event for each of its events. */
    async open(operation: Operation): Promise<HttpResponse> {
      if (streams.size >= config.connectionsMax / 2) {
        throw overloaded('Too many event streams are open.', 5);
      }
      const stream = new EventStream(queueBytesMax, keepAliveSeconds * 1000);
      streams.add(stream);
      stream.once('close', () => streams.delete(stream));
      try {
        stream.leave = subscriptions.join(operation, stream);
        await subscriptions.running();
      } catch (error) {
        stream.destroy();
        throw error;
      }
      return { status: 200, headers: streamHeaders, body: stream };
    },
    /**
     * Ends every stream without `complete`, so that clients reconnect. Clients that do not read are
     * disconnected after 1.5 seconds, so that they do not delay the stop.
     */
    close(): void {
      for (const stream of streams) stream.stop();
      const endAll = (): void => streams.forEach((stream) => stream.destroy(new ClientGone()));
      setTimeout(endAll, stopMilliseconds).unref();
    },
  };
}

/** The response to an operation that is not a subscription: one `next` and `complete`. */
export function toEvents(json: string): HttpResponse {
  return { status: 200, headers, body: `${nextPrefix}${json}\n\n${complete}` };
}

/** Bytes that the client has not taken. */
interface Queued {
  readonly bytes: string | Buffer;
  /** Call it when the client has taken them. */
  readonly release?: (() => void) | undefined;
}

class EventStream extends Readable implements Subscriber {
  /** The current limit for the bytes queued for one stream. */
  readonly #queueBytesMax: () => number;
  readonly #keepAlive: NodeJS.Timeout;
  /** Removes the stream from its group; called when the stream ends. */
  leave: (() => void) | undefined;
  #queue: Queued[] = [];
  #queuedBytes = 0;
  /** What the client is taking. */
  #current: Queued | undefined;
  /** True if the client has taken all that was pushed. */
  #isWanted = false;
  #isEnded = false;

  constructor(queueBytesMax: () => number, keepAliveMilliseconds: number) {
    // Nothing is read ahead, so that a long event is counted until the client has taken it.
    super({ highWaterMark: 0 });
    this.#queueBytesMax = queueBytesMax;
    this.#keepAlive = setInterval(() => this.#write(comment), keepAliveMilliseconds).unref();
    // A client that half-closes an event stream has left.
    this.once('peerEnd', () => this.destroy());
    // Sent before the first event, so that the client sees that it is connected.
    this.#write(comment);
  }

  next(event: SharedEvent): boolean {
    if (this.#isEnded) return true;
    if (this.#queuedBytes > this.#queueBytesMax()) {
      this.destroy();
      return false;
    }
    const pieces = event.toPieces(nextPrefix, nextSuffix, () => noHeader);
    const release = pieces.length > 1 ? event.reserve() : undefined;
    pieces.forEach((piece, at) =>
      this.#write(piece, at === pieces.length - 1 ? release : undefined),
    );
    return true;
  }

  end(ending: Ending): void {
    if (ending.kind === 'overrun') this.destroy();
    else {
      if (ending.kind === 'refused') {
        this.#write(`${nextPrefix}${JSON.stringify({ errors: ending.errors })}\n\n`);
      }
      this.#write(complete);
      this.stop();
    }
  }

  /** Ends the stream when the client has taken what is queued. */
  stop(): void {
    if (this.#isEnded) return;
    this.#finish();
    this.#sendNext();
  }

  override _read(): void {
    this.#isWanted = true;
    this.#sendNext();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#finish();
    for (const { release } of [this.#current ?? {}, ...this.#queue]) release?.();
    this.#queue = [];
    done(error);
  }

  #finish(): void {
    this.#isEnded = true;
    clearInterval(this.#keepAlive);
    this.leave?.();
  }

  #write(bytes: string | Buffer, release?: () => void): void {
    if (this.#isEnded) {
      release?.();
      return;
    }
    this.#queue.push({ bytes, release });
    this.#queuedBytes += bytes.length;
    this.#sendNext();
  }

  #sendNext(): void {
    if (!this.#isWanted) return;
    this.#current?.release?.();
    this.#current = this.#queue.shift();
    if (this.#current === undefined) {
      if (this.#isEnded) this.push(null);
      return;
    }
    this.#isWanted = false;
    this.#queuedBytes -= this.#current.bytes.length;
    this.push(this.#current.bytes);
  }
}
