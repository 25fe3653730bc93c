/**
 * WebSockets at `/graphql`: accepts upgrades, counts the sockets, ends dead ones.
 * Nothing but this and `peer.ts` touches a WebSocket.
 */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { observeAtOnce, type Observer, toObserved } from '../../http/server/observe.ts';
import { refuse } from '../../http/server/raw-response.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import { createQueueShare } from '../events/queue-share.ts';
import { checkHandshake, chooseProtocol } from './handshake.ts';
import type { OperationDeps } from './operation.ts';
import { messageBytesMax, Peer } from './peer.ts';
import type { Protocol } from './protocol.ts';
import type { GraphqlWatch } from '../watch.ts';

export interface WebSocketEndpointDeps extends OperationDeps {
  readonly config: Config;
  /** Told of each handshake, and of each socket that is closed. */
  readonly observer: Observer;
  readonly watch?: GraphqlWatch | undefined;
  /** What operations, answers and events of all sockets take. */
  readonly pool: MemoryPool;
  /** Milliseconds of any clock that only goes forward. */
  readonly now: () => number;
}

export interface WebSocketEndpoint {
  /**
   * For `upgrade` of a server whose sockets have a listener of `error`. Never throws; a refusal is
   * a whole HTTP answer.
   */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Refuses upgrades, closes every socket with 1001, and resolves when all are closed. */
  close(): Promise<void>;
  /** Open sockets. */
  readonly size: number;
}

/** What a peer gets to answer a close frame, before its socket is destroyed. */
const closeMilliseconds = 5_000;
/** Frames of one message; most clients send one. */
const fragmentsMax = 256;
/** Where sockets are opened. */
const endpoint = { route: '/graphql' };
/** Packets that one frame may come in: 256 KiB take some two hundred of the usual size. */
const packetsMax = 1_024;

export function createWebSocketEndpoint(deps: WebSocketEndpointDeps): WebSocketEndpoint {
  const { config, observer, createRequestId } = deps;
  const peers = new Set<Peer>();
  const server = createSocketServer();
  // Without a listener `ws` would answer in HTML.
  server.on('wsClientError', (_error, socket, incoming) => {
    const refusal = new AppError('malformed_request', 'The WebSocket handshake is not valid.');
    refuseHandshake(incoming, socket, refusal);
  });
  const refuseHandshake = (incoming: IncomingMessage, socket: Duplex, refusal: AppError): void => {
    const id = createRequestId();
    const answered = refuse(socket, refusal, id);
    // A path that a client has made up is no route.
    const found = refusal.code === 'not_found' ? undefined : endpoint;
    observeAtOnce(toObserved(incoming, id, found), answered, observer);
  };
  let closing = false;

  const peerDeps = { ...deps, queueBytesMax: createQueueShare(config, peers) };
  const accept = (incoming: IncomingMessage, protocol: Protocol, webSocket: WebSocket): void => {
    const request = toObserved(incoming, createRequestId(), endpoint);
    observeAtOnce(request, { status: 101, bytes: 0 }, observer);
    const observeClose = observer.openSession(request);
    const { socket, headers } = incoming;
    const { authorization } = headers;
    const peer = new Peer(peerDeps, { protocol, authorization }, { webSocket, socket });
    peers.add(peer);
    webSocket.on('close', (code) => {
      peers.delete(peer);
      peer.ended();
      observeClose(code);
    });
  };
  const sweep = setInterval(() => {
    for (const peer of peers) peer.sweep();
  }, config.wsPingSeconds * 1000).unref();

  return {
    get size() {
      return peers.size;
    },
    upgrade(incoming, socket, head) {
      try {
        const protocol = checkHandshake(incoming, config);
        if (closing) throw busy('draining', 'The server is stopping.');
        if (peers.size >= config.connectionsMax / 2) {
          throw busy('overloaded', 'Too many WebSockets are open.');
        }
        server.handleUpgrade(incoming, socket, head, (webSocket) => {
          accept(incoming, protocol, webSocket);
        });
      } catch (error) {
        const refusal = error instanceof AppError ? error : failed(error, deps.log);
        refuseHandshake(incoming, socket, refusal);
      }
    },
    async close() {
      closing = true;
      clearInterval(sweep);
      const gone = [...peers].map((peer) => peer.stop());
      await Promise.all(gone);
    },
  };
}

function createSocketServer(): WebSocketServer {
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    // Each takes memory beside its bytes, and a client can send each byte by itself.
    maxFragments: fragmentsMax,
    maxBufferedChunks: packetsMax,
    // One message per loop iteration: a packet of a thousand messages does not delay other sockets.
    allowSynchronousEvents: false,
    closeTimeout: closeMilliseconds,
    handleProtocols: (names: Set<string>) => chooseProtocol(names)?.name ?? false,
  };
  return new WebSocketServer(options);
}

function busy(code: 'draining' | 'overloaded', message: string): AppError {
  return new AppError(code, message, { retryAfterSeconds: 5 });
}

/** An internal error: masked and logged. */
function failed(error: unknown, log: Log): AppError {
  log('error', 'upgrade failed', { reason: String(error) });
  return new AppError('internal_error', 'The server failed.');
}
