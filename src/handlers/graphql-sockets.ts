/** WebSockets at `/graphql` (Spec §6, R28): the door is loaded and made by the first upgrade. */

import type { Bearer } from '../auth/bearer.ts';
import type { Config } from '../config.ts';
import { AppError } from '../errors.ts';
import type { WebSocketDoor, WebSocketDoorDeps } from '../graphql/ws/upgrade.ts';
import { refuse } from '../http/raw-response.ts';
import type { UpgradeListener } from '../http/server.ts';
import type { GraphqlHandlers } from './graphql.ts';

export interface GraphqlSockets {
  readonly upgrade: UpgradeListener;
  /** Ends every WebSocket with 1001 and every event stream; resolves when the sockets are gone. */
  close(): Promise<void>;
}

export interface GraphqlSocketsDeps extends Pick<
  WebSocketDoorDeps,
  'createRequestId' | 'log' | 'pool'
> {
  readonly bearer: Pick<Bearer, 'authenticateIfSent'>;
  readonly graphql: Pick<GraphqlHandlers, 'openDoor' | 'closeStreams'>;
  readonly config: Config;
}

export function createGraphqlSockets(deps: GraphqlSocketsDeps): GraphqlSockets {
  const { graphql, bearer, log } = deps;
  let door: WebSocketDoor | undefined;
  let opening: Promise<WebSocketDoor> | undefined;
  let closing = false;

  const open = async (): Promise<WebSocketDoor> => {
    const [{ createWebSocketDoor }, { engine, subscriptions }] = await Promise.all([
      import('../graphql/ws/upgrade.ts'),
      graphql.openDoor(),
    ]);
    return (door = createWebSocketDoor({
      ...deps,
      engine,
      subscriptions,
      viewerOf: (authorization) => bearer.authenticateIfSent({ header: () => authorization }),
      now: () => performance.now(),
    }));
  };

  return {
    upgrade(incoming, socket, head) {
      // A reset while the door is being loaded must not end the process.
      socket.on('error', () => socket.destroy());
      if (closing) {
        refuse(socket, new AppError('draining', 'The server is stopping.'));
      } else if (door !== undefined) {
        door.upgrade(incoming, socket, head);
      } else {
        (opening ??= open()).then(
          (opened) => opened.upgrade(incoming, socket, head),
          (error: unknown) => {
            log('error', 'the door for sockets cannot be opened', { reason: String(error) });
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
