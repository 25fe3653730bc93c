/** A service and its endpoint to articles, as the tests call it. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { startServer } from './server.ts';

export const jsonPatch = 'application/json-patch+json';
export const mergePatch = 'application/merge-patch+json';

export async function start(t: TestContext, env: Record<string, string> = {}) {
  const server = await startServer(t, { env });
  return {
    ...server,
    patch(path: string, type: string, body: unknown) {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return server.fetch(path, { method: 'PATCH', headers: { 'Content-Type': type }, body: text });
    },
  };
}

export interface Problem {
  readonly code: string;
  readonly errors?: readonly { readonly pointer: string }[];
}

/** Status and code; also the bound on the response's size. */
export async function saidBy(response: Response): Promise<string> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json');
  const text = await response.text();
  assert.ok(text.length < 2_048, `${text.length} bytes of refusal`);
  return `${response.status} ${(JSON.parse(text) as Problem).code}`;
}
