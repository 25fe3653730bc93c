/** Tokens of accounts that change: their claims, and their end in every place at once (R42). */

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { readClaims } from '../support/tokens.ts';
import { runCommandHere } from '../support/command.ts';
import { logIn, refresh } from '../support/login.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { durableStores, type StorePlace } from '../support/stores.ts';
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
  return { nodes: [await start(), await start()] as const, change };
}

const allPosts = '{ allPosts { id } }';
const commentAdded = 'subscription { commentAdded { id } }';

async function openSocket(
  { port }: TestServer,
  token: string,
  protocols: readonly string[],
): Promise<HandClient> {
  const client = await connectByHand(port, { protocols });
  const { type } = await client.ask({ type: 'connection_init', payload: bearer(token) });
  assert.equal(type, 'connection_ack');
  return client;
}

/** The answer to a query over a socket. */
async function askSocket(client: HandClient, protocols: readonly string[]): Promise<string> {
  const type = protocols[0] === 'graphql-transport-ws' ? 'subscribe' : 'start';
  client.send({ id: '1', type, payload: { query: allPosts } });
  const text = JSON.stringify(await client.next());
  if (!text.includes('error')) assert.equal((await client.next()).type, 'complete');
  return text;
}

const dialects = [['graphql-transport-ws'], ['graphql-ws'], []] as const;

/** A request with a token: its status, and the first that comes of its body. */
async function send(
  [server, token]: readonly [TestServer, string],
  path: string,
  { body, accept = '*/*' }: { readonly body?: unknown; readonly accept?: string } = {},
): Promise<string> {
  const isForm = body instanceof FormData;
  const type = { 'Content-Type': 'application/json' };
  const response = await server.fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...bearer(token), Accept: accept, ...(isForm ? {} : type) },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  });
  const reader = response.body?.getReader();
  const { value = new Uint8Array() } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return `${response.status} ${Buffer.from(value).toString()}`;
}

function toForm(): FormData {
  const form = new FormData();
  form.append('operations', JSON.stringify({ query: allPosts }));
  form.append('map', '{}');
  return form;
}

const query = { query: allPosts };
const accept = 'text/event-stream';

/** Every place where a token is checked: what comes back when one is sent. */
const ways: Readonly<Record<string, (server: TestServer, token: string) => Promise<string>>> = {
  profile: (server, token) => send([server, token], '/profile'),
  'a read': (server, token) => send([server, token], '/posts'),
  'a write': (server, token) => send([server, token], '/api/todos', { body: { title: 'a' } }),
  refresh: (server, token) => send([server, token], '/auth/refresh', { body: {} }),
  'GraphQL by GET': (server, token) =>
    send([server, token], `/graphql?query=${encodeURIComponent(allPosts)}`),
  GraphQL: (server, token) => send([server, token], '/graphql', { body: query }),
  // The response could come out of the cache.
  'GraphQL again': (server, token) => send([server, token], '/graphql', { body: query }),
  'a batch': (server, token) => send([server, token], '/graphql', { body: [query, query] }),
  'a form': (server, token) => send([server, token], '/graphql', { body: toForm() }),
  'an event stream': (server, token) =>
    send([server, token], '/graphql', { body: { query: commentAdded }, accept }),
  ...Object.fromEntries(
    dialects.map((protocols) => [
      `a socket (${protocols[0] ?? 'no protocol'})`,
      async (server: TestServer, token: string) => {
        const client = await openSocket(server, token, protocols);
        const text = await askSocket(client, protocols);
        await client.close();
        return text;
      },
    ]),
  ),
};

const refusal = /"UNAUTHENTICATED"|"invalid_token"/;
const success = /^20[01] |^\{"(?:id|type)":.*"allPosts":\[/;

async function assertAll(
  nodes: readonly TestServer[],
  token: string,
  isRefused: boolean,
): Promise<void> {
  for (const [at, node] of nodes.entries()) {
    for (const [name, ask] of Object.entries(ways)) {
      const text = await ask(node, token);
      assert.match(text, isRefused ? refusal : success, `${name} on node ${at}`);
      assert.doesNotMatch(text, isRefused ? /"allPosts":\[|"id":"0/ : refusal, name);
    }
  }
}

for (const place of durableStores) {
  describe(`tokens ${place.name}`, { skip: place.skip }, () => {
    it('have the roles and the address of the account as they are at a refresh', async (t) => {
      const { nodes, change } = await openSite(t, place);
      const token = await logIn(nodes[0], 'ann', passwords[0]);
      await change('change ann --email new@example.org --role USER --role ADMIN');
      const { auth_time: authTime, credential } = readClaims(token);
      for (const node of nodes) {
        const next = readClaims(await refresh(node, token));
        assert.deepEqual([next['email'], next['roles']], ['new@example.org', ['USER', 'ADMIN']]);
        assert.deepEqual([next['auth_time'], next['credential']], [authTime, credential]);
      }
    });

    it('end with a new password, or with their account, in every place at once', async (t) => {
      const { nodes, change } = await openSite(t, place);
      const [first, second] = nodes;
      const token = await logIn(first, 'ann', passwords[0]);
      await assertAll(nodes, token, false);
      const refreshed = await refresh(second, token);
      const open = dialects.map((protocols) => openSocket(first, token, protocols));
      const sockets = await Promise.all(open);
      await change('passwd ann', passwords[1]);
      for (const old of [token, refreshed]) await assertAll(nodes, old, true);
      for (const [at, socket] of sockets.entries()) {
        assert.match(await askSocket(socket, dialects[at] ?? []), /UNAUTHENTICATED/, `${at}`);
      }
      const young = await logIn(first, 'ann', passwords[1]);
      await assertAll(nodes, young, false);
      // The first password again is another hash, and brings no token back.
      await change('passwd ann', passwords[0]);
      for (const old of [young, token]) await assertAll(nodes, old, true);
      const last = await logIn(first, 'ann', passwords[0]);
      await change('remove ann');
      await assertAll(nodes, last, true);
    });
  });
}
