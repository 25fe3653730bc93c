/** What a fuzzer sends: a request by its parts, so that each part can be changed. */

import type { Random } from './fuzz-random.js';

export interface FuzzPart {
  /** Header lines without the last line end. */
  readonly head: string;
  readonly content: string;
}

export type FuzzBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'form'; readonly parts: readonly FuzzPart[]; readonly boundary: string };

export interface FuzzRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: FuzzBody;
  /** Messages that follow an upgrade to WebSocket. */
  readonly messages?: readonly unknown[];
}

/** What a request can be made of: ids of this run, and a token. */
export interface Known {
  readonly random: Random;
  readonly posts: readonly string[];
  readonly comments: readonly string[];
  readonly todos: readonly string[];
  readonly token: string;
}

export interface Seed {
  /** As the table of routes has it. */
  readonly route: string;
  /** How the service answers it when nothing is changed. */
  readonly status: number;
  /** Comes up so many times as often as others. */
  readonly weight?: number;
  make(known: Known): FuzzRequest;
}

const none: FuzzBody = { kind: 'none' };
const boundary = 'fuzz-frontier';

export function get(target: string, headers: FuzzRequest['headers'] = []): FuzzRequest {
  return { method: 'GET', target, headers, body: none };
}

export function send(method: string, target: string, value: unknown): FuzzRequest {
  const headers = [['Content-Type', 'application/json']] as const;
  return { method, target, headers, body: { kind: 'json', value } };
}

export function patch(target: string, type: string, value: unknown): FuzzRequest {
  const headers = [['Content-Type', type]] as const;
  return { method: 'PATCH', target, headers, body: { kind: 'json', value } };
}

export function form(target: string, parts: readonly FuzzPart[]): FuzzRequest {
  const headers = [['Content-Type', `multipart/form-data; boundary=${boundary}`]] as const;
  return { method: 'POST', target, headers, body: { kind: 'form', parts, boundary } };
}

export function field(name: string, value: unknown): FuzzPart {
  const content = typeof value === 'string' ? value : JSON.stringify(value);
  return { head: `Content-Disposition: form-data; name="${name}"`, content };
}

export function file(name: string, fileName: string, content: string): FuzzPart {
  const disposition = `Content-Disposition: form-data; name="${name}"; filename="${fileName}"`;
  return { head: `${disposition}\r\nContent-Type: text/plain`, content };
}

export function graphql(query: string, variables?: unknown): FuzzRequest {
  return send('POST', '/graphql', { query, variables });
}

export function socket(protocol: string, messages: readonly unknown[]): FuzzRequest {
  const headers = [
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
    ['Sec-WebSocket-Version', '13'],
    ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
    ['Sec-WebSocket-Protocol', protocol],
  ] as const;
  return { ...get('/graphql', headers), messages };
}
