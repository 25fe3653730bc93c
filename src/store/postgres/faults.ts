/**
 * Errors of PostgreSQL: which mean that it is away, busy or full, what callers get for them, and
 * what the log says of an outage.
 */

import { connect } from 'node:net';
import { AppError, codeOf, overloaded, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';

/** The servers that a client connects to, and how. */
interface Addressed {
  readonly options: {
    readonly host: readonly string[];
    readonly port: readonly number[];
    /** An object: TLS is required. */
    readonly ssl: unknown;
  };
}

/** The outage is over when no statement was refused for this long. */
const calmMilliseconds = 1_000;

/** Logs the start and the end of an outage, in which some statements may be answered. */
export function createOutageLog(log: Log) {
  let away = false;
  let refusedAt = 0;
  return {
    /** Call it after each statement that was answered. */
    noteAnswer: (): void => {
      if (!away || Date.now() - refusedAt < calmMilliseconds) return;
      log('info', 'database is back');
      away = false;
    },
    noteAway: (client: Addressed, reason: unknown): void => {
      if (!away) log('warn', 'database is away', describeAway(client, reason));
      away = true;
      refusedAt = Date.now();
    },
  };
}

/** Rows are missing. The connection cannot be trusted any more, so its pool is replaced. */
export class IncompleteResult extends Error {}

/** SQLSTATE classes and codes of a server that is away. */
const isAwayCode = /^(?:08|53|57P|25006)/;
/** SQLSTATE codes of timeouts and conflicts. Other codes are faults of this program. */
const isBusyCode = /^(?:57014|55P03|40001|40P01)/;
const diskFull = '53100';
const readOnly = '25006';
/** Error codes of the network, and of the package for its connections. */
const noConnection = /^(?:E[A-Z]+|CONNECTION_[A-Z]+|CONNECT_TIMEOUT)$/;
const outOfReach = /^(?:E(?!CONNRESET|PIPE)[A-Z]+|CONNECT_TIMEOUT|CONNECTION_DESTROYED|57P03)$/;
/** The certificate, or the server's proof that it knows the password, is not valid. */
const untrusted = /^(?:CERT_|DEPTH_ZERO|ERR_(?:TLS|SSL|OSSL)|SASL_|SELF_SIGNED|UNABLE_TO_)/;
/** PgBouncer uses one code for every refusal; only its message tells the reason. */
const refusedParameter = /^unsupported startup parameter: (?:statement|lock)_timeout/;

/** The session may stay read-only after the database accepts writes again. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === readOnly;
}

/** No server, or no primary, could be reached. A connection that was cut can be made again. */
export function isOutOfReach(error: unknown): boolean {
  return outOfReach.test(codeOf(error) ?? '');
}

/** Errors of the package contain the statement's values, so they are replaced here. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof IncompleteResult) return lost();
  const code = codeOf(error);
  if (code === undefined || error instanceof AppError) return error;
  if (code === diskFull) return new AppError('storage_full', 'The disk of the store is full.');
  if (isBusyCode.test(code)) return busy();
  if ([isAwayCode, noConnection, untrusted].some((codes) => codes.test(code))) return lost();
  return new Error(`PostgreSQL refused a statement: ${toReason(error)} (${code})`);
}

/**
 * Why the start fails, in the server's words, for example because of a wrong password. Undefined if
 * the server may still become available.
 */
export function toStartError(error: unknown): Error | undefined {
  const fault = toStoreError(error);
  const advice = toAdvice(toReason(error), codeOf(error) ?? '');
  if (isAway(fault) && advice === undefined) return undefined;
  const message = advice ?? toReason(fault);
  const named = message.startsWith('STORE_URL') ? message : `STORE_URL: ${message}`;
  return new Error(named, { cause: fault });
}

function toAdvice(message: string, code: string): string | undefined {
  if (untrusted.test(code)) {
    return `the server is not trusted: ${message} (${code}). sslrootcert=FILE trusts an authority.`;
  }
  if (!refusedParameter.test(message)) return undefined;
  return (
    `the pooler says "${message}". Set ignore_startup_parameters to ` +
    'statement_timeout,lock_timeout there, or add ?prepare=false to the URL.'
  );
}

/** The server and the error of it or of the network, which contains nothing of a statement. */
export function describeAway(
  { options: { host, port } }: Addressed,
  error: unknown,
): { readonly host: string; readonly reason: string } {
  const hosts = host.map((name, at) => `${name.includes(':') ? `[${name}]` : name}:${port[at]}`);
  const code = codeOf(error) ?? '';
  const reason = toReason(error);
  return { host: hosts.join(','), reason: reason.includes(code) ? reason : `${reason} (${code})` };
}

/** SSLRequest, and the reply "no" (PostgreSQL, Frontend/Backend Protocol, Message Formats). */
const question = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const no = 'N'.charCodeAt(0);
const patienceMilliseconds = 1_000;

/**
 * True if TLS is required and the server replies that it does not support it. The package takes
 * this reply for the start of TLS, and only reports a lost connection.
 */
export async function lacksTls({ options: { host, port, ssl } }: Addressed): Promise<boolean> {
  if (typeof ssl !== 'object' || ssl === null) return false;
  const socket = connect(port[0] ?? 0, host[0]);
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(patienceMilliseconds, () => resolve(false));
      socket.once('data', ([answer]) => resolve(answer === no));
      socket.once('error', () => resolve(false));
      socket.once('close', () => resolve(false));
      socket.write(question);
    });
  } finally {
    socket.destroy();
  }
}

export function isAway(error: unknown): boolean {
  return error instanceof DatabaseAway;
}

/** The pool logs it, and repeats a statement that only reads. */
class DatabaseAway extends AppError {}

export function lost(): AppError {
  return new DatabaseAway('unavailable', 'The database does not answer.', { retryAfterSeconds: 2 });
}

export function busy(): AppError {
  return overloaded('The database is busy.');
}
