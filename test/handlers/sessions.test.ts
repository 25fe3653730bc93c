/** Tokens of accounts that change: their claims, and their end in every place at once (R42). */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { runCommandHere } from '../support/command.ts';
import { logIn, refresh } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { durableStores, type StorePlace } from '../support/stores.ts';
import { readClaims } from '../support/tokens.ts';
import { connectByHand, type HandClient } from '../support/ws-clients.ts';

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

const passwords = ['a jar of black ink', 'a jar of blue blots'] as const;

/** Two nodes whose store has the account `ann`, and how it changes for both. */
async function openSite(t: TestContext, place: StorePlace) {
  const STORE_URL = await place.newUrl(t);
  const env = { STORE_URL, JWT_SECRET: 's'.repeat(32), REQUIRE_AUTH: 'members' };
  const change = async (args: string, password = ''): Promise<void> => {
    const input = `${password}\n`;
    const { code, errors } = await runCommandHere(['accounts', ...args.split(' ')], { env, input });
    assert.equal(code, 0, errors);
  };
  await change('add ann --email ann@example.org --role USER', passwords[0]);
  const start = () => startServer(t, { env, probed: false });
  const nodes = [await start(), await start()] as const;
  return { nodes, change, enter: (at: 0 | 1) => logIn(nodes[0], 'ann', passwords[at]) };
}

const query = { query: '{ allPosts { id } }' };
const commentAdded = { query: 'subscription { commentAdded { id } }' };

const dialects = ['graphql-transport-ws', 'graphql-ws', ''] as const;

async function openSocket(node: TestServer, token: string, dialect: string): Promise<HandClient> {
  const client = await connectByHand(node.port, { protocols: dialect === '' ? [] : [dialect] });
  const { type } = await client.ask({ type: 'connection_init', payload: bearer(token) });
  assert.equal(type, 'connection_ack');
  return client;
}

/** The answer to a query over a socket. */
async function askSocket(client: HandClient, dialect: string): Promise<string> {
  const type = dialect === 'graphql-transport-ws' ? 'subscribe' : 'start';
  client.send({ id: '1', type, payload: query });
  const text = JSON.stringify(await client.next());
  if (!text.includes('error')) assert.equal((await client.next()).type, 'complete');
  return text;
}

const form = new FormData();
form.append('operations', JSON.stringify(query));
form.append('map', '{}');

/** Every place where a token is checked. */
const ways: Readonly<Record<string, readonly [path: string, body?: unknown, accept?: string]>> = {
  profile: ['/profile'],
  'a read': ['/posts'],
  'a write': ['/api/todos', { title: 'a' }],
  refresh: ['/auth/refresh', {}],
  'GraphQL by GET': [`/graphql?query=${encodeURIComponent(query.query)}`],
  GraphQL: ['/graphql', query],
  // The response could come out of the cache.
  'GraphQL again': ['/graphql', query],
  'a batch': ['/graphql', [query, query]],
  'a form': ['/graphql', form],
  'an event stream': ['/graphql', commentAdded, 'text/event-stream'],
};

/** A request with a token: its status, and the first that comes of its body. */
async function ask(node: TestServer, token: string, name: string): Promise<string> {
  const [path, body, Accept = '*/*'] = ways[name] ?? assert.fail();
  const headers = { ...bearer(token), Accept };
  const response = await (body === undefined || body instanceof FormData
    ? node.fetch(path, { headers, ...(body && { method: 'POST', body }) })
    : node.send('POST', path, body, headers));
  const reader = response.body?.getReader();
  const { value = new Uint8Array() } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return `${response.status} ${Buffer.from(value).toString()}`;
}

const refusal = /"UNAUTHENTICATED"|"invalid_token"/;
const success = /^20[01] |^\{"(?:id|type)":.*"allPosts":\[/;

async function assertAll(nodes: readonly TestServer[], token: string, isRefused: boolean) {
  const check = (text: string, name: string): void => {
    assert.match(text, isRefused ? refusal : success, name);
    assert.doesNotMatch(text, isRefused ? /"allPosts":\[|"id":"0/ : refusal, name);
  };
  for (const node of nodes) {
    for (const name of Object.keys(ways)) check(await ask(node, token, name), name);
    for (const dialect of dialects) {
      const client = await openSocket(node, token, dialect);
      check(await askSocket(client, dialect), `a socket (${dialect})`);
      await client.close();
    }
  }
}

for (const place of durableStores) {
  describe(`tokens ${place.name}`, { skip: place.skip }, () => {
    it('have the roles and the address of the account as they are at a refresh', async (t) => {
      const { nodes, change, enter } = await openSite(t, place);
      const token = await enter(0);
      await change('change ann --email new@example.org --role USER --role ADMIN');
      const { auth_time: authTime, credential } = readClaims(token);
      for (const node of nodes) {
        const next = readClaims(await refresh(node, token));
        assert.deepEqual([next['email'], next['roles']], ['new@example.org', ['USER', 'ADMIN']]);
        assert.deepEqual([next['auth_time'], next['credential']], [authTime, credential]);
      }
    });

    it('end with a new password, or with their account, in every place at once', async (t) => {
      const { nodes, change, enter } = await openSite(t, place);
      const token = await enter(0);
      await assertAll(nodes, token, false);
      const refreshed = await refresh(nodes[1], token);
      const sockets = await Promise.all(dialects.map((one) => openSocket(nodes[0], token, one)));
      await change('passwd ann', passwords[1]);
      for (const old of [token, refreshed]) await assertAll(nodes, old, true);
      for (const [at, socket] of sockets.entries()) {
        assert.match(await askSocket(socket, dialects[at] ?? ''), /UNAUTHENTICATED/, `${at}`);
      }
      const young = await enter(1);
      // The first password again is another hash, and brings no token back.
      await change('passwd ann', passwords[0]);
      for (const old of [young, token]) await assertAll(nodes, old, true);
      const last = await enter(0);
      await assertAll(nodes, last, false);
      await change('remove ann');
      await assertAll(nodes, last, true);
    });
  });
}
