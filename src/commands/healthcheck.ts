/** `--healthcheck`: asks the server on this machine with the same settings whether it is ready. */

import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Config, readConfig } from '../config.ts';
import { codeOf } from '../errors.ts';
import { report, type CommandContext, type ExitCode } from './command.ts';

/** The store may take a second; the rest allows for a busy machine. */
const patienceMilliseconds = 3_000;

/** Returns exit code 0 if the server is ready. */
export async function runHealthcheck(context: CommandContext): Promise<ExitCode> {
  let isReady = false;
  const code = await report(async () => {
    const health = await askHealth(readConfig(context.environment));
    ({ isReady } = health);
    return health.message;
  })(context);
  return isReady ? code : 1;
}

interface Health {
  readonly isReady: boolean;
  /** The server's response, or why there is none. */
  readonly message: string;
}

async function askHealth(config: Pick<Config, 'host' | 'port' | 'adminPort'>): Promise<Health> {
  const port = typeof config.adminPort === 'number' ? config.adminPort : config.port;
  if (port === 0) return { isReady: false, message: 'PORT is 0: the port is not known.' };
  const host = ownAddress[config.host] ?? config.host;
  const signal = AbortSignal.timeout(patienceMilliseconds);
  return new Promise((resolve) => {
    const fail = (error: unknown): void => {
      const reason = codeOf(error) ?? 'no answer';
      resolve({ isReady: false, message: `No answer from port ${port} of ${host} (${reason}).` });
    };
    const request = get({ host, port, path: '/readyz', signal, agent: false }, (response) => {
      const isReady = response.statusCode === 200;
      text(response).then((message) => resolve({ isReady, message }), fail);
    });
    request.once('error', fail);
  });
}

/** Wildcard addresses cannot be connected to everywhere: the loopback address stands in. */
const ownAddress: Readonly<Record<string, string>> = {
  '': '127.0.0.1',
  '0.0.0.0': '127.0.0.1',
  '::': '::1',
};
