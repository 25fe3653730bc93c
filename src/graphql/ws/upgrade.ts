/**
 * WebSockets at `/graphql`: accepts upgrades, counts the sockets, ends dead ones.
 * Nothing but this and `peer.ts` touches a WebSocket.
 */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { createClientAddress } from '../../http/client-address.ts';
import { refuse } from '../../http/server/raw-response.ts';
import type { CountedLog, Log } from '../../log.ts';
import type { MemoryPool } from '../../memory-pool.ts';
import { createQueueShare } from '../events/queue-share.ts';
import { checkHandshake, chooseProtocol, toText } from './handshake.ts';
import type { Handshake } from './connection.ts';
import type { OperationDeps } from './operation.ts';
import { messageBytesMax, Peer, type PeerSockets } from './peer.ts';

export interface WebSocketEndpointDeps extends OperationDeps {
  readonly config: Config;
  readonly security: CountedLog;
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
/** Characters of an origin in the log. */
const originLengthMax = 128;
/** Packets that one frame may come in: 256 KiB take some two hundred of the usual size. */
const packetsMax = 1_024;

export function createWebSocketEndpoint(deps: WebSocketEndpointDeps): WebSocketEndpoint {
  const { config } = deps;
  const peers = new Set<Peer>();
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
  const server = new WebSocketServer(options);
  // Without a listener `ws` would answer in HTML.
  server.on('wsClientError', (_error, socket) => {
    refuse(socket, new AppError('malformed_request', 'The WebSocket handshake is not valid.'));
  });
  let closing = false;

  const peerDeps = { ...deps, queueBytesMax: createQueueShare(config, peers) };
  const accept = (handshake: Handshake, sockets: PeerSockets): void => {
    const peer = new Peer(peerDeps, handshake, sockets);
    peers.add(peer);
    sockets.webSocket.on('close', () => {
      peers.delete(peer);
      peer.ended();
    });
  };
  const sweep = setInterval(() => {
    for (const peer of peers) peer.sweep();
  }, config.wsPingSeconds * 1000).unref();

  const reportForeign = createForeignReport(deps);

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
        const { authorization } = incoming.headers;
        server.handleUpgrade(incoming, socket, head, (webSocket) => {
          // `node:http` hands over the socket that it made; its type is wider for other servers.
          accept({ protocol, authorization }, { webSocket, socket: socket as Socket });
        });
      } catch (error) {
        const refusal = error instanceof AppError ? error : failed(error, deps.log);
        if (refusal.code === 'foreign_origin') reportForeign(incoming);
        refuse(socket, refusal);
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

function createForeignReport({
  config,
  security,
}: WebSocketEndpointDeps): (incoming: IncomingMessage) => void {
  const clientAddress = createClientAddress(config.trustedProxies);
  return ({ headers, socket }) => {
    const { remoteAddress = '' } = socket;
    const client = clientAddress({ remoteAddress, header: (name) => toText(headers[name]) });
    security('origin refused', { client, origin: headers.origin?.slice(0, originLengthMax) });
  };
}

function busy(code: 'draining' | 'overloaded', message: string): AppError {
  return new AppError(code, message, { retryAfterSeconds: 5 });
}

/** An internal error: masked and logged. */
function failed(error: unknown, log: Log): AppError {
  log('error', 'upgrade failed', { reason: String(error) });
  return new AppError('internal_error', 'The server failed.');
}
