/**
 * Results as server-sent events (GraphQL over SSE, distinct connections mode). Subscriptions share
 * groups and queue limits with WebSocket (R30).
 */

import { PassThrough } from 'node:stream';
import type { Config } from '../../config.ts';
import { overloaded } from '../../errors.ts';
import { ClientGone } from '../../http/server/body.ts';
import type { HttpRequest, HttpResponse } from '../../http/message.ts';
import type { Account } from '../../store/model.ts';
import { type ConnectionMemory, uncountedBytesMax } from '../../memory-pool.ts';
import type { Operation } from '../engine.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import { createQueueLimit, type Ending, type Subscriber } from '../events/subscriber.ts';
import type { Subscriptions } from '../events/subscriptions.ts';

export type EventStreams = ReturnType<typeof createEventStreams>;

const headers: readonly string[] = [
  'Content-Type',
  'text/event-stream; charset=utf-8',
  // A proxy that compresses holds events back until it has enough of them (RFC 9111 §5.2.2.6).
  'Cache-Control',
  'no-store, no-transform',
  // Without this header, some proxies buffer the response.
  'X-Accel-Buffering',
  'no',
];

/** A stream's connection is not reused, so that a clean stop does not wait for it. */
const streamHeaders: readonly string[] = [...headers, 'Connection', 'close'];

const comment = ':\n\n';
/**
 * A page cannot see comments. `EventSource` sends GET, and ignores events without a listener.
 * Libraries send POST, and some fail at an event that they do not know.
 */
const ping = 'event: ping\ndata:\n\n';
/** The `data` line is empty, but needed: browsers ignore an event without data. */
const complete = 'event: complete\ndata:\n\n';
/** A browser forgets the last id. */
const resetId = 'id:\n';
const nextPrefix = 'event: next\ndata: ';
const nextSuffix = Buffer.from('\n\n');
/** How long a client may take to read its queue while the server stops, as over WebSocket. */
const stopMilliseconds = 1_500;

export function createEventStreams(subscriptions: Subscriptions, config: Config) {
  const streams = new Set<EventStream>();
  const getQueueBytesMax = createQueueLimit(config, streams);
  // Shorter than the time after which an idle connection is closed.
  const keepAliveSeconds = Math.min(config.wsPingSeconds, config.idleTimeoutSeconds / 2);

  return {
    /** The number of open streams. */
    get size(): number {
      return streams.size;
    },
    /** Responds to a subscription of this account with a `next` event for each of its events. */
    async open(
      operation: Operation,
      { memory, method }: Pick<HttpRequest, 'memory' | 'method'>,
      account?: Account,
    ): Promise<HttpResponse> {
      if (streams.size >= config.connectionsMax / 2) {
        throw overloaded('Too many event streams are open.', 5);
      }
      const stream = new EventStream(memory, getQueueBytesMax);
      stream.keepAlive(method === 'GET' ? ping : comment, keepAliveSeconds * 1_000);
      streams.add(stream);
      stream.body.once('close', () => streams.delete(stream));
      try {
        stream.leave = subscriptions.join(operation, stream, account);
        await subscriptions.ready();
      } catch (error) {
        stream.body.destroy();
        throw error;
      }
      return { status: 200, headers: streamHeaders, body: stream.body };
    },
    /**
     * Ends every stream without `complete`, so that clients reconnect. Clients that do not read are
     * disconnected after 1.5 seconds, so that they do not delay the stop.
     */
    close(): void {
      for (const stream of streams) stream.stop();
      const endAll = (): void => streams.forEach(({ body }) => body.destroy(new ClientGone()));
      setTimeout(endAll, stopMilliseconds).unref();
    },
  };
}

/** The response to an operation that is not a subscription: one `next` and `complete`. */
export function toEvents(json: string): HttpResponse {
  return { status: 200, headers, body: `${nextPrefix}${json}\n\n${complete}` };
}

class EventStream implements Subscriber {
  readonly memory: ConnectionMemory;
  /** A stream without room on its readable side: a piece is queued until it can be sent. */
  readonly body = new PassThrough({ readableHighWaterMark: 0 });
  /** The current limit for the bytes queued for one stream. */
  readonly #getQueueBytesMax: () => number;
  /** The functions that release long events when the client has taken them (`SharedEvent`). */
  readonly #releases = new Set<() => void>();
  /** Removes the stream from its group; called when the stream ends. */
  leave: (() => void) | undefined;

  constructor(memory: ConnectionMemory, getQueueBytesMax: () => number) {
    this.memory = memory;
    this.#getQueueBytesMax = getQueueBytesMax;
    // A client that half-closes an event stream has left.
    this.body.once('peerEnd', () => this.body.destroy());
    this.body.once('close', () => {
      this.leave?.();
      for (const release of this.#releases) release();
      this.#releases.clear();
    });
    // Sent before the first event, so that the client sees that it is connected.
    this.#write(comment);
  }

  /** Sends this text at an interval, until the stream ends. */
  keepAlive(text: string, milliseconds: number): void {
    const timer = setInterval(() => this.#write(text), milliseconds).unref();
    this.body.once('close', () => clearInterval(timer));
  }

  next(event: SharedEvent): boolean {
    if (!this.body.writable) return true;
    // The bytes in the queue, without the piece that the client is taking.
    if (this.body.writableLength - this.body.readableLength > this.#getQueueBytesMax()) {
      this.body.destroy();
      return false;
    }
    // R41: a browser that connects again sends the id as `Last-Event-ID`. It is no prefix, of which
    // each stream would make and compare a text: an eighth of what an event takes a stream.
    const toHeader = (): Buffer => Buffer.from(`id: ${event.id}\n`);
    const pieces = event.toPieces(nextPrefix, nextSuffix, toHeader);
    for (const piece of pieces) this.body.write(piece);
    if (pieces.length > 1) this.#whenTaken(event.reserve(this.memory));
    return true;
  }

  taken(): Promise<void> | undefined {
    const { writable, writableLength } = this.body;
    if (!writable || writableLength <= uncountedBytesMax) return undefined;
    return new Promise((resolve) => this.#whenTaken(resolve));
  }

  end(ending: Ending): void {
    if (ending.kind === 'overflow') {
      this.body.destroy();
      return;
    }
    if (ending.kind !== 'complete') {
      // Otherwise the browser would connect again with the id that names nothing (R41).
      const isGone = ending.errors.some(({ extensions }) => extensions.code === 'NOT_FOUND');
      const errors = JSON.stringify({ errors: ending.errors });
      this.#write(`${isGone ? resetId : ''}${nextPrefix}${errors}\n\n`);
    }
    this.#write(complete);
    this.stop();
  }

  /** Ends the stream when the client has taken what is queued. */
  stop(): void {
    this.leave?.();
    this.body.end();
  }

  #write(text: string): void {
    if (this.body.writable) this.body.write(text);
  }

  /** The callback of an empty write is called after those before it, but not by `destroy()`. */
  #whenTaken(release: () => void): void {
    this.#releases.add(release);
    this.body.write('', () => {
      if (this.#releases.delete(release)) release();
    });
  }
}
