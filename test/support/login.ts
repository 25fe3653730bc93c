/** Logins over the wire, on any server. */

import assert from 'node:assert/strict';

/** `http://127.0.0.1:port` of it. */
interface Served {
  readonly url: string;
}

export function askLogin({ url }: Served, username: unknown, password: unknown): Promise<Response> {
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ username, password });
  return fetch(`${url}/auth/login`, { method: 'POST', headers, body });
}

/** The token of a login that succeeds; of a demo account by default. */
export async function logIn(
  server: Served,
  username = 'user',
  password = 'password',
): Promise<string> {
  const response = await askLogin(server, username, password);
  assert.equal(response.status, 200);
  const { access_token: token } = (await response.json()) as { readonly access_token: string };
  return token;
}

export function askRefresh({ url }: Served, token: string, init: RequestInit = {}) {
  const headers = new Headers(init.headers);
  headers.set('Authorization', `Bearer ${token}`);
  return fetch(`${url}/auth/refresh`, { ...init, method: 'POST', headers });
}

/** The token that a valid one is refreshed to (R42). */
export async function refresh(server: Served, token: string): Promise<string> {
  const response = await askRefresh(server, token);
  assert.equal(response.status, 200);
  const { access_token: next } = (await response.json()) as { readonly access_token: string };
  return next;
}

export function askProfile({ url }: Served, authorization?: string): Promise<Response> {
  return fetch(`${url}/profile`, authorization === undefined ? {} : { headers: { authorization } });
}
