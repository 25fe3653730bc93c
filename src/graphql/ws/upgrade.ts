/**
 * WebSockets at `/graphql`: accepts upgrades, limits the number of sockets, terminates dead ones.
 * Only this file and `peer.ts` touch a WebSocket.
 */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Config } from '../../config.ts';
import { AppError, overloaded } from '../../errors.ts';
import { observeAtOnce, type Observer, toObserved } from '../../http/server/observe.ts';
import { refuse } from '../../http/server/raw-response.ts';
import type { Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import { createQueueShare } from '../events/queue-share.ts';
import { checkHandshake, chooseProtocol } from './handshake.ts';
import type { OperationDeps } from './operation.ts';
import { messageBytesMax, Peer } from './peer.ts';
import type { Protocol } from './protocol.ts';
import type { GraphqlMetrics } from '../../watch/service-metrics.ts';

export interface WebSocketEndpointDeps extends OperationDeps {
  readonly config: Config;
  /** Receives each handshake, and each close of a socket. */
  readonly observer: Observer;
  readonly metrics?: GraphqlMetrics | undefined;
  /** Accounts for operations, results and events of all sockets. */
  readonly pool: MemoryPool;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

export interface WebSocketEndpoint {
  /**
   * A listener for the server's `upgrade` event. The socket must have a listener for `error`. Never
   * throws; a refusal is a complete HTTP response.
   */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Refuses upgrades, closes every socket with 1001, and resolves when all are closed. */
  close(): Promise<void>;
  /** The number of open sockets. */
  readonly size: number;
}

/** How long a client may take to answer a close frame before its socket is destroyed. */
const closeMilliseconds = 5_000;
/** Frames of one message; most clients send one. */
const fragmentsMax = 256;
/** The path on which sockets are accepted. */
const endpoint = { route: '/graphql' };
/** Packets of one frame: 256 KiB take about two hundred of the usual size. */
const packetsMax = 1_024;

export function createWebSocketEndpoint(deps: WebSocketEndpointDeps): WebSocketEndpoint {
  const { config, observer, createRequestId } = deps;
  const peers = new Set<Peer>();
  const server = createSocketServer();
  // Without a listener `ws` would send an HTML response.
  server.on('wsClientError', (_error, socket, incoming) => {
    const refusal = new AppError('malformed_request', 'The WebSocket handshake is not valid.');
    refuseHandshake(incoming, socket, refusal);
  });
  const refuseHandshake = (incoming: IncomingMessage, socket: Duplex, refusal: AppError): void => {
    const id = createRequestId();
    const sent = refuse(socket, refusal, id);
    // A path chosen by a client must not become a route in the log.
    const found = refusal.code === 'not_found' ? undefined : endpoint;
    observeAtOnce(toObserved(incoming, id, found), sent, observer);
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
        if (closing) {
          throw new AppError('draining', 'The server is stopping.', { retryAfterSeconds: 5 });
        }
        if (peers.size >= config.connectionsMax / 2) {
          throw overloaded('Too many WebSockets are open.', 5);
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
    // Each fragment takes memory in addition to its bytes, and a client can send single bytes.
    maxFragments: fragmentsMax,
    maxBufferedChunks: packetsMax,
    // One message per iteration: a packet with a thousand messages must not delay other sockets.
    allowSynchronousEvents: false,
    closeTimeout: closeMilliseconds,
    handleProtocols: (names: Set<string>) => chooseProtocol(names)?.name ?? false,
  };
  return new WebSocketServer(options);
}

/** The error for an internal failure, which is masked and logged. */
function failed(error: unknown, log: Log): AppError {
  log('error', 'upgrade failed', { reason: String(error) });
  return new AppError('internal_error', 'The server failed.');
}
