/**
 * Errors of PostgreSQL: which mean that it is away, busy or full, what callers get for them, and
 * what the log says of an outage.
 */

import { AppError, codeOf, overloaded, toReason } from '../../../errors.ts';
import type { Log } from '../../../log.ts';

/** The outage is over when no statement was refused for this long. */
const calmMilliseconds = 1_000;

export type OutageLog = ReturnType<typeof createOutageLog>;

/** Logs the start and the end of an outage, in which some statements may succeed. */
export function createOutageLog(log: Log, host: string) {
  let away = false;
  let refusedAt = 0;
  return {
    /** Call it after each statement that the server has run. */
    noteSuccess: (): void => {
      if (!away || performance.now() - refusedAt < calmMilliseconds) return;
      log('info', 'database is back');
      away = false;
    },
    noteAway: (error: unknown): void => {
      if (!away) log('warn', 'database is away', { host, reason: describe(error) });
      away = true;
      refusedAt = performance.now();
    },
  };
}

/** SQLSTATE classes and codes of a server that is away. */
const isAwayCode = /^(?:08|53|57P|25006)/;
/** SQLSTATE codes of timeouts and conflicts. Other codes are faults of this program. */
const isBusyCode = /^(?:57014|55P03|40001|40P01)/;
const diskFull = '53100';
const readOnly = '25006';
const uniqueViolation = '23505';
/** SQLSTATE codes of a wrong password or role; poolers have one for all that they refuse. */
const refusedLogin = /^(?:28|08P01)/;
/** SQLSTATE codes with which a server closes the connection. */
const closesConnection = /^(?:08|57P)/;
/** The certificate is not valid. */
const untrusted = /^(?:CERT_|DEPTH_ZERO|ERR_(?:TLS|SSL|OSSL)|SELF_SIGNED|UNABLE_TO_)/;
/** PgBouncer uses one code for every refusal; only its message tells the reason. */
const refusedParameter = /^unsupported startup parameter: (?:statement|lock)_timeout/;
/** Then only single statements could be sent. */
const refusedTransaction = /^transaction blocks not allowed/;
/** Other errors of a start that waiting does not cure; the package gives them no code. */
const refusedStart = /^(?:SASL|The server does not support SSL)/;
/** A statement that was prepared in another session. */
const isElsewhereCode = /^(?:26000|42P05)$/;

/** The session may stay read-only after the database accepts writes again. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === readOnly;
}

/** The error is not from the server, or the server closes the connection with it. */
export function isConnectionLost(error: unknown): boolean {
  return !isFromServer(error) || closesConnection.test(codeOf(error) ?? '');
}

/** The statement has not run: a pooler gives each transaction another session. */
export function isPreparedElsewhere(error: unknown): boolean {
  return isElsewhereCode.test(codeOf(error) ?? '');
}

export function isRefusedLogin(error: unknown): boolean {
  return refusedLogin.test(codeOf(error) ?? '');
}

/** Errors of the server have a severity. */
function isFromServer(error: unknown): boolean {
  return error instanceof Error && 'severity' in error;
}

/** Errors of the server can contain values of the statement, so they are replaced here. */
export function toStoreError(error: unknown): Error {
  if (error instanceof AppError) return error;
  const code = codeOf(error) ?? '';
  if (!isFromServer(error) || isAwayCode.test(code)) {
    return code === diskFull
      ? new AppError('storage_full', 'The disk of the store is full.')
      : lost();
  }
  if (isBusyCode.test(code)) return isAboutKey(error) ? new KeyInUse() : busy();
  if (code === uniqueViolation && isAboutKey(error)) return new KeyTaken();
  return new Error(`PostgreSQL refused a statement: ${toReason(error)} (${code})`);
}

/**
 * Why the start fails, in the server's words, for example because of a wrong password. Undefined if
 * the server may still become available.
 */
export function toStartError(error: unknown): Error | undefined {
  const message = toReason(error);
  if (/^(?:STORE_URL|UPLOAD_DIR)/.test(message)) return new Error(message, { cause: error });
  const advice = toAdvice(message, codeOf(error) ?? '');
  const fault = toStoreError(error);
  if (advice === undefined && (isAway(fault) || isBusy(error))) return undefined;
  return new Error(`STORE_URL: ${advice ?? toReason(fault)}`, { cause: fault });
}

/** Other transactions are in the way: locks and conflicts. */
export function isBusy(error: unknown): boolean {
  return isBusyCode.test(codeOf(error) ?? '');
}

function toAdvice(message: string, code: string): string | undefined {
  if (untrusted.test(code)) {
    return `the server is not trusted: ${message} (${code}). sslrootcert=FILE trusts an authority.`;
  }
  if (refusedStart.test(message)) return message;
  if (refusedTransaction.test(message)) {
    return `the pooler says "${message}". Its pool_mode has to be session or transaction.`;
  }
  if (!refusedParameter.test(message)) return undefined;
  return (
    `the pooler says "${message}". Set ignore_startup_parameters to ` +
    'statement_timeout,lock_timeout there, or add ?prepare=false to the URL.'
  );
}

/** An error of the server or of the network, which contains nothing of a statement. */
export function describe(error: unknown): string {
  const code = codeOf(error) ?? '';
  const reason = toReason(error);
  return reason.includes(code) ? reason : `${reason} (${code})`;
}

export function isAway(error: unknown): boolean {
  return error instanceof DatabaseAway;
}

/**
 * The server names the table of the key (R40) that is there, or it or its index if it waits: the
 * latter in a sentence of its language.
 */
function isAboutKey(error: unknown): boolean {
  const { table = '', where = '' } = error as { readonly table?: string; readonly where?: string };
  return table === 'requests' || where.includes('requests');
}

export function isKeyTaken(error: unknown): boolean {
  return error instanceof KeyTaken;
}
/** The key of the write is there. */
class KeyTaken extends Error {}

export function isKeyInUse(error: unknown): boolean {
  return error instanceof KeyInUse;
}
class KeyInUse extends AppError {
  constructor() {
    const message = 'The first request with this Idempotency-Key is under way.';
    super('request_in_progress', message, { retryAfterSeconds: 1 });
  }
}

/** The pool logs it, and repeats a statement that only reads. */
class DatabaseAway extends AppError {}

export function lost(): AppError {
  return new DatabaseAway('unavailable', 'The database does not answer.', { retryAfterSeconds: 2 });
}

export function busy(): AppError {
  return overloaded('The database is busy.');
}
