/** How the steps of the model's histories write, and under which keys (R40). */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { codes, post as askGraphql } from './graphql-http.ts';
import type { TestServer } from './server.ts';

const under = (key: string, more: Readonly<Record<string, string>> = {}) => {
  return { 'Idempotency-Key': key, ...more };
};

/** What a client sees of a response, without what differs by time and request. */
async function seen(response: Response): Promise<readonly unknown[]> {
  const { status, headers } = response;
  const location = headers.get('location');
  return [status, location, headers.get('idempotency-replayed'), await response.text()];
}

/**
 * How a write is sent: without a key; under a new one; under a new one, and again, because its
 * answer is lost; first under the key of the last write, which is refused; or after the last write
 * has been sent again.
 */
export const deliveries = ['plain', 'keyed', 'lost', 'reused', 'late'] as const;
export type Delivery = (typeof deliveries)[number];

/** A write that stored something under its key, and what was answered. */
interface Used {
  readonly key: string;
  readonly path: string;
  readonly init: RequestInit;
  readonly answer: readonly unknown[];
}

/** Returns a function that returns the server for a step. It keeps the last key that was used up. */
export function createDeliveries(server: TestServer): (delivery: Delivery) => TestServer {
  let last: Used | undefined;
  const send = (path: string, init: RequestInit, key: string): Promise<Response> =>
    server.fetch(path, { ...init, headers: under(key, init.headers as Record<string, string>) });
  const deliver = async (delivery: Delivery, path: string, init: RequestInit) => {
    if (delivery === 'late' && last !== undefined) {
      assert.deepEqual(await seen(await send(last.path, last.init, last.key)), last.answer);
    }
    const isOther = last?.path !== path || last.init.body !== init.body;
    if (delivery === 'reused' && last !== undefined && isOther) {
      const [status, , replayed, body] = await seen(await send(path, init, last.key));
      assert.deepEqual([status, replayed], [path === '/graphql' ? 200 : 422, null]);
      assert.match(String(body), /used for another request|invalid_body/);
    }
    const key = randomUUID();
    const response = await send(path, init, key);
    const [status, location, replayed, body] = await seen(response.clone());
    assert.equal(replayed, null);
    const isStored = response.ok && !String(body).includes('"errors"');
    if (isStored) last = { key, path, init, answer: [status, location, 'true', body] };
    if (delivery !== 'lost') return response;
    await response.arrayBuffer();
    const again = await send(path, init, key);
    const answer = [status, location, isStored ? 'true' : null];
    assert.deepEqual((await seen(again.clone())).slice(0, 3), answer);
    return again;
  };
  return (delivery) => {
    const fetch: TestServer['fetch'] = (path, init = {}) =>
      delivery === 'plain' || init.method === undefined
        ? server.fetch(path, init)
        : deliver(delivery, path, init);
    const headers = { 'Content-Type': 'application/json' };
    const sendJson: TestServer['send'] = (method, path, body) =>
      fetch(path, { method, headers, body: JSON.stringify(body) });
    return { ...server, fetch, send: sendJson };
  };
}

type Created = readonly [status: number, id: string];

export async function create(server: TestServer, path: string, body: object): Promise<Created> {
  const response = await server.send('POST', path, body);
  await response.arrayBuffer();
  return [response.status, response.headers.get('location')?.split('/').at(-1) ?? ''];
}

/** The same by GraphQL, with the status that REST would have. */
export async function mutate(server: TestServer, field: string, input: object): Promise<Created> {
  const type = field.startsWith('addComment') ? 'CommentInput' : 'CreatePostInput';
  const query = `mutation ($input: ${type}!) { id: ${field} }`;
  const { body } = await askGraphql(server, { query, variables: { input } });
  const [code] = codes(body);
  const id = String((body as { data: { id: string } | null }).data?.id);
  return [code === undefined ? 201 : code === 'NOT_FOUND' ? 404 : 500, id];
}

/** A list of operations, or a merge patch. */
export function sendPatch(server: TestServer, path: string, body: object): Promise<Response> {
  const type = Array.isArray(body) ? 'json-patch' : 'merge-patch';
  const headers = { 'Content-Type': `application/${type}+json` };
  return server.fetch(path, { method: 'PATCH', headers, body: JSON.stringify(body) });
}

export async function expectStatus(pending: Promise<Response>, status: number): Promise<Response> {
  const response = await pending;
  assert.equal(response.status, status);
  // A response that nobody reads keeps its connection.
  if (status !== 200) await response.arrayBuffer();
  return response;
}
