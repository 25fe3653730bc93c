/**
 * Results as server-sent events (GraphQL over SSE, distinct connections mode). Subscriptions share
 * groups and queue limits with WebSocket (R30).
 */

import { Readable } from 'node:stream';
import type { Config } from '../../config.ts';
import { overloaded } from '../../errors.ts';
import { ClientGone } from '../../http/server/body.ts';
import { negotiate } from '../../http/media-type.ts';
import type { HttpResponse, HttpRequest } from '../../http/message.ts';
import { andThen, type MaybePromise } from '../../maybe-promise.ts';
import type { Engine, GraphqlRequest, ReadyOperation } from '../engine.ts';
import type { GraphqlResult } from '../result.ts';
import type { SharedEvent } from '../events/shared-event.ts';
import { createQueueLimit, type Ending, type Subscriber } from '../events/subscriber.ts';
import type { Subscriptions } from '../events/subscriptions.ts';
import { type Call, runPrepared } from './operations.ts';

export type EventStreams = ReturnType<typeof createEventStreams>;

export interface EventStreamsDeps {
  readonly engine: Pick<Engine, 'authorize' | 'execute' | 'prepare'>;
  readonly subscriptions: Subscriptions;
  readonly config: Config;
}

const eventStream = 'text/event-stream';
const headers: readonly string[] = [
  'Content-Type',
  `${eventStream}; charset=utf-8`,
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

/** True if the client prefers events to JSON. */
export function wantsEvents(request: Pick<HttpRequest, 'header'>): boolean {
  const accept = request.header('accept');
  if (accept === undefined || !accept.includes(eventStream)) return false;
  const placeOf = (type: string): number => {
    const at = accept.indexOf(type);
    return at === -1 ? accept.length : at;
  };
  // Of equal weights the type that is named first wins: urql names all that it can read.
  const types = [eventStream, 'application/json', 'application/graphql-response+json'];
  return (
    negotiate(
      accept,
      types.toSorted((a, b) => placeOf(a) - placeOf(b)),
    ) === eventStream
  );
}

export function createEventStreams(deps: EventStreamsDeps) {
  const { engine, subscriptions, config } = deps;
  const streams = new Set<EventStream>();
  const queueBytesMax = createQueueLimit(config, streams);
  // Shorter than the time after which an idle connection is closed.
  const keepAliveSeconds = Math.min(config.wsPingSeconds, config.idleTimeoutSeconds / 2);
  const limits = { queueBytesMax, keepAliveMilliseconds: keepAliveSeconds * 1000 };

  const subscribe = async (operation: ReadyOperation, { scope }: Call): Promise<HttpResponse> => {
    await engine.authorize(scope.viewer);
    if (streams.size >= config.connectionsMax / 2) {
      throw overloaded('Too many event streams are open.', 5);
    }
    const stream = new EventStream(limits);
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
  };

  return {
    /** The number of open streams. */
    get size(): number {
      return streams.size;
    },
    /**
     * Runs the operation. A subscription responds with a `next` event for each of its events. Any
     * other operation, and a refused one, responds with one `next` and `complete`. Throws an
     * AppError for an operation that must not run this way, and `overloaded` if too many streams
     * are open.
     */
    run(request: GraphqlRequest, call: Call): MaybePromise<HttpResponse> {
      const prepared = engine.prepare(request);
      if (prepared.kind === 'ready' && prepared.operation === 'subscription') {
        return subscribe(prepared, call);
      }
      return andThen(runPrepared(engine, prepared, call), ({ json }) => toResponse(json));
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

function toResponse(json: string): HttpResponse {
  return { status: 200, headers, body: `${nextPrefix}${json}\n\n${complete}` };
}

interface StreamLimits {
  /** The current limit for the bytes queued for one stream. */
  readonly queueBytesMax: () => number;
  readonly keepAliveMilliseconds: number;
}

/** Bytes that the client has not taken. */
interface Queued {
  readonly bytes: string | Buffer;
  /** Call it when the client has taken them. */
  readonly release?: (() => void) | undefined;
}

class EventStream extends Readable implements Subscriber {
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

  constructor({ queueBytesMax, keepAliveMilliseconds }: StreamLimits) {
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
      if (ending.kind === 'refused') this.#writeResult({ errors: ending.errors });
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

  #writeResult(result: GraphqlResult): void {
    this.#write(`${nextPrefix}${JSON.stringify(result)}\n\n`);
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
