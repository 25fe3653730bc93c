/** `--healthcheck`: asks the server on this machine with the same settings whether it is ready. */

import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Config, readConfig } from '../config.ts';
import { codeOf } from '../errors.ts';
import type { RunCommand } from './command.ts';

/** The store may take a second; the rest allows for a busy machine. */
const timeoutMilliseconds = 3_000;

/** Resolves with the response of a server that is ready. */
export const runHealthcheck: RunCommand = (_args, { environment }) =>
  askHealth(readConfig(environment));

function askHealth(config: Pick<Config, 'host' | 'port' | 'adminPort'>): Promise<string> {
  const port = config.adminPort ?? config.port;
  if (port === 0) throw new Error('PORT is 0: the port is not known.');
  const host = ownAddress[config.host] ?? config.host;
  const signal = AbortSignal.timeout(timeoutMilliseconds);
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      const reason = codeOf(error) ?? 'timeout';
      reject(new Error(`No response from port ${port} of ${host} (${reason}).`));
    };
    const request = get({ host, port, path: '/readyz', signal, agent: false }, (response) => {
      const isReady = response.statusCode === 200;
      text(response).then((body) => (isReady ? resolve(body) : reject(new Error(body))), fail);
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
