/**
 * WebSockets at `/graphql`: accepts upgrades, limits the number of sockets, terminates dead ones.
 * Only this file and `client-socket.ts` touch a WebSocket.
 */

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import type { Config } from '../../config.ts';
import { AppError, overloaded } from '../../errors.ts';
import { createClientAddress } from '../../http/client-address.ts';
import { refuseForeign } from '../../http/origins.ts';
import { checkMessage, hasBody, parseTarget } from '../../http/server/incoming.ts';
import { observeAtOnce, type Observer, toObserved } from '../../http/server/observe.ts';
import type { UpgradeListener } from '../../http/server/server.ts';
import { createQueueLimit } from '../events/subscriber.ts';
import { type Accepted, ClientSocket } from './client-socket.ts';
import type { SocketDeps } from './operation.ts';
import { olderProtocol, type Protocol, newerProtocol } from './protocols.ts';
import { Session } from './session.ts';

interface WebSocketEndpointDeps extends SocketDeps {
  readonly config: Config;
  /** Receives each handshake, and each close of a socket. */
  readonly observer: Observer;
}

type Given = Omit<Accepted, 'address'>;

/** How long a client may take to answer a close frame before its socket is destroyed. */
const closeMilliseconds = 5_000;
/** In bodies: a message that is longer than one is read for its id alone (R28). */
const messageBodiesMax = 4;
/** Each fragment takes memory in addition to its bytes; most clients send one. */
const fragmentsMax = 256;
/** The path on which sockets are accepted. */
const endpoint = { route: '/graphql' };

const protocols: readonly Protocol[] = [newerProtocol, olderProtocol];

export function createWebSocketEndpoint(deps: WebSocketEndpointDeps) {
  const { config, observer, createUuid } = deps;
  const addressOf = createClientAddress(config.trustedProxies);
  const open = new Set<Session>();
  const getQueueBytesMax = createQueueLimit(config, open);
  let closing = false;
  const server = new WebSocketServer(toServerOptions(config));
  // Without a listener `ws` would send an HTML response. `handleUpgrade` passes the error on.
  server.on('wsClientError', () => {
    throw new AppError('malformed_request', 'The WebSocket handshake is not valid.');
  });
  const accept = (incoming: IncomingMessage, protocol: Protocol, given: Given): void => {
    const request = toObserved(incoming, createUuid(), endpoint);
    observeAtOnce(request, { status: 101, bytes: 0 }, observer);
    const observeClose = observer.openSession(request);
    const { socket, headers } = incoming;
    const address = addressOf(request);
    const client = new ClientSocket({ ...given, address }, socket, getQueueBytesMax);
    const session = new Session(deps, client, { protocol, authorization: headers.authorization });
    open.add(session);
    listen(given.webSocket, socket, session);
    given.webSocket.on('close', (code) => {
      open.delete(session);
      session.end();
      observeClose(code);
    });
  };
  const ping = (): void => open.forEach((session) => session.ping());
  const pings = setInterval(ping, config.wsPingSeconds * 1000).unref();

  return {
    /** The number of open sockets. */
    get size(): number {
      return open.size;
    },
    /**
     * A listener for the server's `upgrade` event. The socket must have a listener for `error`.
     * Never throws; a rejection is a complete HTTP response.
     */
    upgrade: ((incoming, socket, { head, memory, refuse }) => {
      try {
        const protocol = checkHandshake(incoming, config);
        checkCapacity({ closing, size: open.size }, config);
        const take = (ws: WebSocket): void => accept(incoming, protocol, { webSocket: ws, memory });
        server.handleUpgrade(incoming, socket, head, take);
      } catch (error) {
        // A path chosen by a client must not become a route in the log.
        if (error instanceof AppError) {
          return refuse(error, error.code === 'not_found' ? undefined : endpoint);
        }
        deps.log('error', 'upgrade failed', { reason: String(error) });
        refuse(new AppError('internal_error', 'The server failed.'), endpoint);
      }
    }) satisfies UpgradeListener,
    /** Refuses upgrades, closes every socket with 1001, and resolves when all are closed. */
    async close(): Promise<void> {
      closing = true;
      clearInterval(pings);
      await Promise.all(Array.from(open, (session) => session.stop()));
    },
  };
}

function checkCapacity(
  { closing, size }: { readonly closing: boolean; readonly size: number },
  { connectionsMax }: Config,
): void {
  if (closing) {
    throw new AppError('draining', 'The server is stopping.', { retryAfterSeconds: 5 });
  }
  if (size >= connectionsMax / 2) throw overloaded('Too many WebSockets are open.', 5);
}

function listen(webSocket: WebSocket, socket: Socket, session: Session): void {
  socket.on('drain', () => session.drained());
  socket.on('data', ({ length }: Buffer) => session.countPacket(length));
  webSocket.on('message', (data: RawData) => {
    session.receive(data as Buffer); // `binaryType` is left at `nodebuffer`
  });
  const count = (data: Buffer): void => session.countControl(data);
  webSocket.on('ping', count).on('pong', count);
  // An invalid frame or a reset; `ws` then closes the socket.
  webSocket.on('error', () => session.end());
}

const toServerOptions = ({ bodyBytesMax }: Pick<Config, 'bodyBytesMax'>) => ({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: Math.min(messageBodiesMax * bodyBytesMax, 2 ** 31 - 1),
  maxFragments: fragmentsMax,
  maxBufferedChunks: 0, // counted by `countPacket`
  // One message per iteration: a packet with a thousand messages must not delay other sockets.
  allowSynchronousEvents: false,
  closeTimeout: closeMilliseconds,
  handleProtocols: (names: Set<string>) => chooseProtocol(names)?.name ?? false,
});

/** Returns the sub-protocol of the socket. Throws an AppError for a request to refuse. */
function checkHandshake(
  incoming: IncomingMessage,
  config: Pick<Config, 'allowedOrigins' | 'publicUrl'>,
): Protocol {
  checkMessage(incoming);
  if (hasBody(incoming)) {
    throw new AppError('malformed_request', 'A WebSocket handshake has no body.');
  }
  const target = parseTarget(incoming.url ?? '');
  if (target.path !== '/graphql') {
    throw new AppError('not_found', 'There is no WebSocket at this path: connect to /graphql.');
  }
  const host = target.host ?? incoming.headers.host ?? '';
  refuseForeign({ host, header: (name) => incoming.headers[name]?.toString() }, config);
  if (incoming.headers['sec-websocket-version'] !== '13') {
    throw new AppError('malformed_request', 'The version of WebSocket here is 13.', {
      headers: ['Sec-WebSocket-Version', '13'],
    });
  }
  const offered = incoming.headers['sec-websocket-protocol'];
  // `ws` takes neither an empty list nor a name twice. It sees the name that is chosen, if any.
  delete incoming.headers['sec-websocket-protocol'];
  if (!offered) return olderProtocol;
  const protocol = chooseProtocol(offered.split(',').map((name) => name.trim()));
  if (protocol === undefined) {
    throw new AppError(
      'malformed_request',
      'The WebSocket sub-protocols here are graphql-transport-ws and graphql-ws.',
    );
  }
  incoming.headers['sec-websocket-protocol'] = protocol.name;
  return protocol;
}

/** Returns the first supported protocol in the client's order (R28). */
function chooseProtocol(offered: Iterable<string>): Protocol | undefined {
  for (const name of offered) {
    const protocol = protocols.find((known) => known.name === name);
    if (protocol !== undefined) return protocol;
  }
  return undefined;
}
