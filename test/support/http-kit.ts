/** The HTTP kit around handlers of a test's own: answers that are slow, long, or thrown. */

import type { ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { readConfig } from '../../dist/config.js';
import { createListener } from '../../dist/http/server/exchange.js';
import type { Observer } from '../../dist/http/server/observe.js';
import { type Handler, textResponse } from '../../dist/http/message.js';
import { HttpServer, type UpgradeListener } from '../../dist/http/server/server.js';
import { MemoryPool } from '../../dist/memory-pool.js';
import { AppError } from '../../dist/errors.js';
import type { Log } from '../../dist/log.js';
import { createRouter } from '../../dist/router.js';
import { createScheduler } from '../../dist/scheduler.js';
import { announce } from './announce.ts';
import { connectRaw } from './raw-client.ts';
import type { LogRecord } from './server.ts';

interface HttpKitOptions {
  /** Handlers by method and path, `GET /slow`. There is a `GET /hello` beside them. */
  readonly routes: Readonly<Record<string, Handler>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly observer?: Observer;
  readonly drainSeconds?: number;
  /** Default: it is refused. */
  readonly upgrade?: UpgradeListener;
}

const refuseUpgrade: UpgradeListener = (_incoming, _socket, { refuse }) =>
  refuse(new AppError('not_found', 'Nothing here.'));
const hello: Handler = () => textResponse(200, 'hello');

/** Stops with the test that asked for it. */
export async function startHttp(
  context: Pick<TestContext, 'after'>,
  { routes, env = {}, observer, drainSeconds = 8, upgrade = refuseUpgrade }: HttpKitOptions,
) {
  const config = readConfig(env);
  const logged: LogRecord[] = [];
  const log: Log = (level, event, facts) => void logged.push({ ...facts, level, event });
  const find = createRouter(
    Object.entries({ 'GET /hello': hello, ...routes }).map(([route, handler]) => {
      const [method = '', path = ''] = route.split(' ');
      return { method, path, endpoint: { handler } };
    }),
  );
  const pool = new MemoryPool(config.requestMemoryBytesMax);
  const { run } = createScheduler();
  const listener = createListener({ find, run, log, idPrefix: 'test', observer });
  const due = new Set<ServerResponse>();
  const server = new HttpServer({
    listener: {
      ...listener,
      respond(connection, message) {
        const { outgoing } = message;
        due.add(outgoing.once('close', () => due.delete(outgoing)));
        return listener.respond(connection, message);
      },
    },
    upgrade,
    pool,
    config,
    drainSeconds,
  });
  const { port } = await server.listen(0, '127.0.0.1');
  const announceStop = announce(context, `http://127.0.0.1:${port}`);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    announceStop();
    return (stopped ??= server.close(() => Promise.resolve()));
  };
  context.after(stop);
  const settle = (millisecondsMax: number): Promise<void> => {
    announceStop(); // it takes no more connections
    return server.settle(millisecondsMax);
  };
  /** How many answers are under way. */
  const active = (): number => due.size;
  return { port, logged, pool, active, settle, stop };
}

/** The kit around one handler, of GET and POST to `/`, and a client of it. */
export async function startHandler(
  context: Pick<TestContext, 'after'>,
  handler: Handler,
  options: Omit<HttpKitOptions, 'routes'> = {},
) {
  const routes = { 'GET /': handler, 'POST /': handler };
  const kit = await startHttp(context, { ...options, routes });
  return { ...kit, client: await connectRaw(context, kit.port) };
}

type Gate = ReturnType<typeof gate>;

/** A promise and the function that fulfils it. */
export function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Answers once `opened` is; opens `asked` before. */
export function slowRoute(opened: Gate, asked?: Gate): Handler {
  return async () => {
    asked?.open();
    await opened.opened;
    return textResponse(200, 'slow');
  };
}
