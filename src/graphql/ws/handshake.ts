/** Checks the upgrade request of a WebSocket (R27, R28), and bounds the token that is stored. */

import type { IncomingMessage } from 'node:http';
import { tokenLengthMax } from '../../auth/jwt.ts';
import type { Config } from '../../config.ts';
import { AppError } from '../../errors.ts';
import { refuseForeign } from '../../http/cross-site.ts';
import { checkMessage, hasBody, parseTarget } from '../../http/server/incoming.ts';
import { legacyWs } from './legacy-ws.ts';
import type { Protocol } from './protocol.ts';
import { transportWs } from './transport-ws.ts';

const protocols: readonly Protocol[] = [transportWs, legacyWs];

/** Returns the sub-protocol of the socket. Throws an AppError for a request to refuse. */
export function checkHandshake(
  incoming: IncomingMessage,
  config: Pick<Config, 'allowedOrigins' | 'publicUrl'>,
): Protocol {
  checkMessage(incoming);
  if (hasBody(incoming)) {
    throw new AppError('malformed_request', 'A WebSocket handshake has no body.');
  }
  const target = parseTarget(incoming.url ?? '');
  if (target.path !== '/graphql') {
    throw new AppError('not_found', 'There is no WebSocket at this path.');
  }
  const host = target.host ?? incoming.headers.host ?? '';
  refuseForeign({ host, header: (name) => incoming.headers[name]?.toString() }, config);
  if (incoming.headers['sec-websocket-version'] !== '13') {
    throw new AppError('malformed_request', 'The version of WebSocket here is 13.', {
      webSocketVersion: '13',
    });
  }
  const offered = incoming.headers['sec-websocket-protocol'];
  if (offered === undefined) return legacyWs;
  const protocol = chooseProtocol(offered.split(',').map((name) => name.trim()));
  if (protocol === undefined) {
    throw new AppError(
      'malformed_request',
      'The WebSocket sub-protocols here are graphql-transport-ws and graphql-ws.',
    );
  }
  return protocol;
}

/** Returns the first supported protocol in the client's order (R28). */
export function chooseProtocol(offered: Iterable<string>): Protocol | undefined {
  for (const name of offered) {
    const protocol = protocols.find((known) => known.name === name);
    if (protocol !== undefined) return protocol;
  }
  return undefined;
}

/** Copies what is stored as long as the socket is open; what no token can be is cut. */
export function toStored(authorization: string | undefined): string | undefined {
  // Cut it is still longer than a token, so it stays invalid.
  const text = authorization?.slice(0, tokenLengthMax + 'Bearer '.length + 1);
  return text && Buffer.from(text).toString();
}
