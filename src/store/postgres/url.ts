/**
 * Parses a URL of PostgreSQL as libpq does: its hosts, and TLS. The package can try several hosts
 * itself, but without pauses, and without an error if none answers; so it gets one host at a time.
 */

import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { toReason } from '../../errors.ts';

const defaultPort = 5432;

/** One host of the URL, for the package. */
export interface Target {
  /** With only this host, and without the parameters that became `options`. */
  readonly url: string;
  readonly options: {
    readonly target_session_attrs?: 'primary';
    readonly ssl?: ConnectionOptions | 'prefer' | false;
    readonly host?: string;
    readonly port?: number;
  };
}

/**
 * False with `?prepare=false`: as behind PgBouncer in transaction mode, each statement may run in
 * another session, so that session settings and LISTEN have no effect.
 */
export function hasSessions(url: string): boolean {
  return !/[?&]prepare=false(?:&|$)/.test(url);
}

/** Returns the hosts in order. Throws a one-line Error that names STORE_URL if it is invalid. */
export function readUrl(text: string): readonly Target[] {
  const [, start = '', hosts = '', rest = ''] =
    /^([^/]*\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? [];
  return hosts.split(',').map((name, _at, { length }) => {
    const url = parse(`${start}${name}${rest}`);
    const take = (parameter: string): string | undefined => {
      const value = url.searchParams.get(parameter) ?? undefined;
      url.searchParams.delete(parameter);
      return value;
    };
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const options = {
      ...toSession(take('target_session_attrs') ?? (length > 1 ? 'primary' : undefined)),
      ...toTls(host, take),
      ...(host.includes(':') && toAddress(host, Number(url.port || defaultPort))),
    };
    return { url: url.href, options };
  });
}

function parse(text: string): URL {
  try {
    return new URL(text);
  } catch (error) {
    throw new Error('STORE_URL: this is no URL of a PostgreSQL database.', { cause: error });
  }
}

/** The package cannot read an IPv6 address in text, but takes lists, which its types leave out. */
function toAddress(host: string, port: number): Pick<Target['options'], 'host' | 'port'> {
  return { host: [host] as unknown as string, port: [port] as unknown as number };
}

/** Every node writes, so a standby is no use. The package accepts one for `read-write`. */
function toSession(given: string | undefined): { readonly target_session_attrs?: 'primary' } {
  if (given === undefined) return {};
  assertOne('target_session_attrs', given, ['primary', 'read-write']);
  return { target_session_attrs: 'primary' };
}

/**
 * The package has no channel binding (SCRAM-SHA-256-PLUS). If it is required, the certificate must
 * be verified instead, which also excludes a man in the middle.
 */
function toTls(
  host: string,
  take: (parameter: string) => string | undefined,
): Pick<Target['options'], 'ssl'> {
  const root = take('sslrootcert');
  const [cert, key] = [readFile('sslcert', take), readFile('sslkey', take)];
  const binding = take('channel_binding') ?? 'prefer';
  assertOne('channel_binding', binding, ['disable', 'prefer', 'require']);
  const isBound = binding === 'require';
  const needsTls = isBound || [root, cert, key].some((one) => one !== undefined);
  const mode = take('sslmode') ?? (needsTls ? 'verify-full' : undefined);
  if (mode === undefined) return {};
  const strict = ['require', 'verify-ca', 'verify-full'];
  assertOne('sslmode', mode, needsTls ? strict : ['disable', 'prefer', ...strict]);
  if (mode === 'disable') return { ssl: false };
  if (mode === 'prefer') return { ssl: mode };
  const isNamed = mode === 'verify-full' || isBound || root === 'system';
  const ca = root === 'system' ? undefined : readFile('sslrootcert', () => root);
  return {
    ssl: {
      // The name to verify: the package sends none if the host is an address.
      host,
      rejectUnauthorized: isNamed || mode === 'verify-ca' || root !== undefined,
      ...(!isNamed && { checkServerIdentity: () => undefined }),
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
    },
  };
}

function readFile(
  parameter: string,
  take: (parameter: string) => string | undefined,
): Buffer | undefined {
  const path = take(parameter);
  if (path === undefined) return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(`STORE_URL: ${parameter}: ${toReason(error)}`, { cause: error });
  }
}

function assertOne(parameter: string, value: string, supported: readonly string[]): void {
  if (supported.includes(value)) return;
  const those = supported.join(', ');
  throw new Error(`STORE_URL: ${parameter}=${value} is not supported here, only ${those}.`);
}
