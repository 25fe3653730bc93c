/** A message from Node, and the checks of its head: RFC 9112 for an origin server. */

import { IncomingMessage, type ServerResponse } from 'node:http';
import { AppError, type ErrorCode } from '../../errors.ts';

export class Incoming extends IncomingMessage {
  /** True for a request whose `Upgrade` is ignored: what follows it is not read. */
  declare isUpgradeIgnored?: boolean;
}

/**
 * Node would pass every request with `Upgrade` to the upgrade listener, even the `h2c` of common
 * clients. A server ignores an upgrade that it does not support (RFC 9110 §7.8): here only a GET
 * for `websocket` is one.
 */
export function isUpgrade(incoming: Incoming): boolean {
  const { method, headers } = incoming;
  const isOne = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
  incoming.isUpgradeIgnored = !isOne;
  return isOne;
}

/**
 * Before version 24.9 Node has no `shouldUpgradeCallback`, but reads and writes this property. The
 * class goes with the last such version.
 */
export class OlderIncoming extends Incoming {
  /** Node's parser sets it for CONNECT, and for `Upgrade` with `Connection: upgrade`. */
  declare isUpgradeRequested: boolean;

  get upgrade(): boolean {
    return this.isUpgradeRequested && (this.method === 'CONNECT' || isUpgrade(this));
  }

  set upgrade(requested: boolean) {
    this.isUpgradeRequested = requested;
  }
}

/** A message, and the response to it. */
export interface Message {
  readonly incoming: Incoming;
  readonly outgoing: ServerResponse;
  /** The header `Expect` (RFC 9110 §10.1.1): `100-continue`, or an unknown expectation. */
  readonly expectation: 'none' | 'continue' | 'other';
}

/** True if a body follows the head (RFC 9112 §6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  return headers['content-length'] !== undefined && headers['content-length'] !== '0';
}

/** A host name or address, which may have a zone (RFC 6874), with an optional port (RFC 3986 §3.2.2). */
const hostPattern =
  /^(?:\[[0-9A-Fa-f:.]+(?:%[0-9A-Za-z._~%-]+)?\]|[0-9A-Za-z._~!$&'()*+,;=%-]+)(?::[0-9]{0,5})?$/;

/** Header lines of a request. Browsers and proxies send about thirty. */
export const headerLinesMax = 100;

/** The methods that resources have. Node's parser knows more of them, such as PROPFIND. */
export const methods: readonly string[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
];

/** R6a: also for what Node's parser does not know. */
export function unknownMethod(): AppError {
  return new AppError('not_implemented', 'No resource has this method.');
}

/** Throws for messages that RFC 9112 forbids and Node accepts. */
export function checkMessage(incoming: IncomingMessage): void {
  if (incoming.rawHeaders.length > 2 * headerLinesMax) {
    throw closingError('headers_too_large', 'The request has too many header lines.');
  }
  if (incoming.httpVersionMajor !== 1) {
    throw closingError('http_version_not_supported', 'This server speaks HTTP/1.1.');
  }
  const { method = '' } = incoming;
  if (method === 'TRACE') {
    throw new AppError('method_not_allowed', 'TRACE is not served.', {
      headers: ['Allow', methods.join(', ')],
    });
  }
  if (!methods.includes(method)) throw unknownMethod();
  checkSingle(incoming);
  const { host } = incoming.headers;
  // HTTP/1.0 does not require Host, but if it is sent it must be valid. Node joins repeated ones
  // with a comma and a space, which no host has.
  if (host === undefined ? incoming.httpVersionMinor !== 0 : !hostPattern.test(host)) {
    throw closingError('invalid_host', 'A request needs one valid Host.');
  }
  const coding = incoming.headers['transfer-encoding'];
  if (coding !== undefined) checkCoding(coding, incoming.httpVersionMinor);
}

/** RFC 9112 §6.1. */
function checkCoding(coding: string, minorVersion: number): void {
  if (minorVersion === 0)
    throw closingError('malformed_request', 'HTTP/1.0 has no Transfer-Encoding.');
  if (coding === '') throw closingError('malformed_request', 'Transfer-Encoding is empty.');
  if (coding.toLowerCase() !== 'chunked') {
    throw closingError('not_implemented', 'Transfer-Encoding can only be chunked.');
  }
}

/**
 * Headers that must not be repeated; a type may be, with one value. Node joins repeated values
 * (`joinDuplicateHeaders`), as some clients do themselves.
 */
const singleHeaders = ['authorization', 'content-type'] as const;

function checkSingle({ headers, rawHeaders }: IncomingMessage): void {
  for (const name of singleHeaders) {
    if (headers[name]?.includes(',') !== true) continue;
    const [first = '', ...others] = headers[name].split(/, */);
    if (name === 'content-type' && others.every((other) => other === first)) {
      headers[name] = first;
      continue;
    }
    const isName = (text: string, at: number): boolean =>
      at % 2 === 0 && text.toLowerCase() === name;
    if (rawHeaders.filter(isName).length > 1) {
      throw new AppError('malformed_request', `The header ${name} was sent twice.`);
    }
  }
}

/** The minimum that a server should support (RFC 9110 §4.1); half of the limit for all headers. */
const targetBytesMax = 8_000;

/**
 * Parses a request target; `host` is defined only for the absolute form. The path `*` means the
 * server itself (OPTIONS only, RFC 9112 §3.2.4).
 */
export function parseTarget(target: string) {
  if (target.length > targetBytesMax) {
    throw new AppError('target_too_long', `A request target has at most ${targetBytesMax} bytes.`);
  }
  if (target.includes('#')) throw badTarget();
  let host: string | undefined;
  let rest = target;
  if (target.charCodeAt(0) !== 0x2f) {
    if (target === '*') return { path: '*', query: '', host };
    const absolute = /^https?:\/\/([^/?]*)(.*)$/i.exec(target);
    if (absolute?.[1] === undefined || !hostPattern.test(absolute[1])) throw badTarget();
    host = absolute[1];
    rest = absolute[2]?.startsWith('/') ? absolute[2] : `/${absolute[2]}`;
  }
  const mark = rest.indexOf('?');
  if (mark === -1) return { path: rest, query: '', host };
  return { path: rest.slice(0, mark), query: rest.slice(mark + 1), host };
}

function badTarget(): AppError {
  return closingError('malformed_request', 'The request target is not valid.');
}

/** An error that closes the connection, because the bytes after the request cannot be trusted. */
function closingError(code: ErrorCode, message: string): AppError {
  return new AppError(code, message, { close: true });
}
