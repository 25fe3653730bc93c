/**
 * What goes wrong on PostgreSQL: which errors say that it is away, busy or full, what callers get
 * in their place, and what the log says of an outage.
 */

import { connect } from 'node:net';
import { AppError, toReason } from '../../errors.ts';
import type { Log } from '../../log.ts';

/** Where a client's connections go, and how. */
interface Addressed {
  readonly options: {
    readonly host: readonly string[];
    readonly port: readonly number[];
    /** An object: with TLS, or not at all. */
    readonly ssl: unknown;
  };
}

interface OutageLog {
  /** After a statement that was answered. */
  readonly noteAnswer: () => void;
  readonly noteAway: (client: Addressed, reason: unknown) => void;
}

/** The database is said to be back when no statement was refused for so long. */
const calmMilliseconds = 1_000;

/** A line when it goes and one when it is back: some statements may be answered meanwhile. */
export function createOutageLog(log: Log): OutageLog {
  let away = false;
  let refusedAt = 0;
  return {
    noteAnswer() {
      if (!away || Date.now() - refusedAt < calmMilliseconds) return;
      log('info', 'database is back');
      away = false;
    },
    noteAway(client, reason) {
      if (!away) log('warn', 'database is away', describeAway(client, reason));
      away = true;
      refusedAt = Date.now();
    },
  };
}

/** The connection is not to be believed any more, and is given up with its pool. */
export class IncompleteResult extends Error {
  override readonly name = 'IncompleteResult';
}

/** SQLSTATE classes and codes of a server that is away. */
const isAwayCode = /^(?:08|53|57P|25006)/;
/** Those of a statement that took too long, or met another. The rest are faults of this program. */
const isBusyCode = /^(?:57014|55P03|40001|40P01)/;
const diskFull = '53100';
const readOnly = '25006';
/** What the network says, and what the package says of its connections. */
const noConnection = /^(?:E[A-Z]+|CONNECTION_[A-Z]+|CONNECT_TIMEOUT)$/;
const outOfReach = /^(?:E(?!CONNRESET|PIPE)[A-Z]+|CONNECT_TIMEOUT|CONNECTION_DESTROYED|57P03)$/;
/** What is wrong with a certificate, or with the server's proof that it knows the password. */
const untrusted = /^(?:CERT_|DEPTH_ZERO|ERR_(?:TLS|SSL|OSSL)|SASL_|SELF_SIGNED|UNABLE_TO_)/;
/** PgBouncer has one code for whatever it refuses; its text says what. */
const refusedParameter = /^unsupported startup parameter: (?:statement|lock)_timeout/;

/** A session may stay so after the database is written to again. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === readOnly;
}

/** No connection could be made, or none to a primary; one that is cut can be made again. */
export function isOutOfReach(error: unknown): boolean {
  return error instanceof Error && 'code' in error && outOfReach.test(String(error.code));
}

/** The package's error carries the statement's values: it goes no further than this. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof IncompleteResult) return lost();
  if (!(error instanceof Error) || error instanceof AppError || !('code' in error)) return error;
  const code = String(error.code);
  if (code === diskFull) return new AppError('storage_full', 'The disk of the store is full.');
  if (isBusyCode.test(code)) return busy();
  if ([isAwayCode, noConnection, untrusted].some((codes) => codes.test(code))) return lost();
  return new Error(`PostgreSQL refused a statement: ${error.message} (${code})`);
}

/**
 * Why there is no start: the server's own words, as for a refused password or a database that is
 * not there. Undefined where it may come while it is waited for.
 */
export function toStartError(error: unknown): Error | undefined {
  const fault = toStoreError(error);
  const advice =
    error instanceof Error && 'code' in error
      ? toAdvice(error.message, String(error.code))
      : undefined;
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

/** Which server it is, and what it or the network says: nothing of a statement is in that. */
export function describeAway(
  { options: { host, port } }: Addressed,
  error: unknown,
): { readonly host: string; readonly reason: string } {
  const hosts = host.map((name, at) => `${name.includes(':') ? `[${name}]` : name}:${port[at]}`);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = toReason(error);
  return { host: hosts.join(','), reason: reason.includes(code) ? reason : `${reason} (${code})` };
}

/** SSLRequest, and the answer "no" (PostgreSQL, Frontend/Backend Protocol, Message Formats). */
const question = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const no = 'N'.charCodeAt(0);
const patienceMilliseconds = 1_000;

/**
 * True where TLS is required and the server says that it has none: it never will while it runs.
 * The package takes this answer for the beginning of TLS, and then only knows of a lost connection.
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

/** The pool notes it, and sends what only reads once more. */
class DatabaseAway extends AppError {}

export function lost(): AppError {
  return new DatabaseAway('unavailable', 'The database does not answer.', { retryAfterSeconds: 2 });
}

export function busy(): AppError {
  return new AppError('overloaded', 'The database is busy.', { retryAfterSeconds: 1 });
}
