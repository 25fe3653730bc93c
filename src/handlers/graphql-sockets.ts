/** WebSockets at `/graphql` (Spec §6, R28), loaded with the first upgrade. */

import type { Bearer } from '../auth/bearer.ts';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { WebSocketEndpoint, WebSocketEndpointDeps } from '../graphql/ws/upgrade.ts';
import { refuse } from '../http/server/raw-response.ts';
import type { UpgradeListener } from '../http/server/server.ts';
import type { GraphqlHandlers } from './graphql.ts';

export interface GraphqlSockets {
  readonly upgrade: UpgradeListener;
  /** Ends every WebSocket with 1001 and every event stream; resolves when the sockets are gone. */
  close(): Promise<void>;
}

export interface GraphqlSocketsDeps extends Pick<
  WebSocketEndpointDeps,
  'createRequestId' | 'log' | 'pool'
> {
  readonly bearer: Pick<Bearer, 'authenticateIfSent'>;
  readonly graphql: Pick<GraphqlHandlers, 'openEndpoint' | 'closeStreams'>;
  readonly config: Config;
}

export function createGraphqlSockets(deps: GraphqlSocketsDeps): GraphqlSockets {
  const { graphql, bearer, log } = deps;
  let endpoint: WebSocketEndpoint | undefined;
  let opening: Promise<WebSocketEndpoint> | undefined;
  let closing = false;

  const open = async (): Promise<WebSocketEndpoint> => {
    const [{ createWebSocketEndpoint }, { engine, subscriptions }] = await Promise.all([
      import('../graphql/ws/upgrade.ts'),
      graphql.openEndpoint(),
    ]);
    return (endpoint = createWebSocketEndpoint({
      ...deps,
      engine,
      subscriptions,
      viewerOf: (authorization) => bearer.authenticateIfSent({ header: () => authorization }),
      now: () => performance.now(),
    }));
  };

  return {
    upgrade(incoming, socket, head) {
      // A reset while the endpoint is loaded must not end the process.
      socket.on('error', () => socket.destroy());
      if (closing) {
        refuse(socket, new AppError('draining', 'The server is stopping.'));
      } else if (endpoint !== undefined) {
        endpoint.upgrade(incoming, socket, head);
      } else {
        (opening ??= open()).then(
          (opened) => opened.upgrade(incoming, socket, head),
          (error: unknown) => {
            log('error', 'the WebSocket endpoint cannot be loaded', { reason: String(error) });
            refuse(socket, new AppError('internal_error', 'The server failed.'));
          },
        );
      }
    },
    async close() {
      closing = true;
      graphql.closeStreams();
      // Where opening failed there is nothing to close, and the log has said so.
      const opened = await opening?.catch(() => undefined);
      await opened?.close();
    },
  };
}
